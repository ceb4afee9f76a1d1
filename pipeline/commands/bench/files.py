"""Files that the user names for figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline.errors import PipelineError
from stages.messages import escape


def writing(name: str, write: Callable[[Path], object]) -> None:
    """Calls `write` with the path. Raises PipelineError where it cannot be written."""
    try:
        write(Path(name).expanduser())
    except OSError as error:
        raise PipelineError(f"{escape.name(name)} cannot be written: {error.strerror}") from error
