"""Write a result file that the user named."""

from collections.abc import Callable
from pathlib import Path

from pipeline.errors import PipelineError
from stages.support.messages import escape


def write_named_file(name: str, write: Callable[[Path], object]) -> None:
    """Call `write` with the path. Raises PipelineError if the file cannot be written."""
    try:
        write(Path(name).expanduser())
    except OSError as error:
        raise PipelineError(f"{escape.name(name)} cannot be written: {error.strerror}") from error
