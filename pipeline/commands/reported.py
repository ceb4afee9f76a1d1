"""Errors of commands, as messages or, for who asks, as tracebacks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from pipeline.commands.exit_codes import FAILED
from pipeline.errors import PipelineError
from stages.messages import escape


def reported(work: Callable[[], int]) -> int:
    """Run a command; an error becomes its message on stderr and exit code 1."""
    try:
        return work()
    except PipelineError as error:
        if wants_traceback():
            raise
        sys.stderr.write(f"ERROR: {escape.message(str(error))}\n")
        return FAILED


def wants_traceback() -> bool:
    """Whether the user asked for tracebacks: FIRMLINE_TRACEBACK=1, or `-v 2`, which sets it."""
    return os.environ.get("FIRMLINE_TRACEBACK", "") not in ("", "0")
