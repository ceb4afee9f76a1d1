"""Print a command's errors as messages or, on request, as tracebacks."""

import os
import sys
from collections.abc import Callable

from pipeline.commands.exit_codes import FAILED
from pipeline.errors import PipelineError
from stages.support.messages import escape


def report_errors(work: Callable[[], int]) -> int:
    """Run a command. Prints a PipelineError to stderr and returns exit code 1 for it."""
    try:
        return work()
    except PipelineError as error:
        if wants_traceback():
            raise
        sys.stderr.write(f"ERROR: {escape.message(str(error))}\n")
        return FAILED


def wants_traceback() -> bool:
    """Return whether tracebacks are requested: FIRMLINE_TRACEBACK=1, or `-v 2`, which sets it."""
    return os.environ.get("FIRMLINE_TRACEBACK", "") not in ("", "0")
