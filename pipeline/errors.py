"""The one exception tree of the pipeline, and "did you mean".

    PipelineError            printed as one to five lines, never as a traceback
      RecipeError            a recipe, pipeline.yaml or an override is wrong; knows file, line and column
      ToolError              a tool is missing or too old
      StoreError             the artifact store cannot be read or written
        DiskFullError
      StageFailed            a stage refused its input (is also the StageError that the stage raised)
      StageCrashed           a stage raised something it should not; the traceback is in log.txt

Whoever prints them needs no other type; stages themselves raise only StageError.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

from stages.base import StageError


class PipelineError(Exception):
    """A failure with a message for the user; `hint` says what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}\n{hint}" if hint else message)
        self.message = message
        self.hint = hint


class RecipeError(PipelineError):
    """A mistake in what the user wrote.

    `file`, `line` and `column` (both from 1) say where; they are '' and 0 when the value came from the command line.
    """

    def __init__(self, message: str, *, hint: str = "", file: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line
        self.column = column


class ToolError(PipelineError):
    """A tool is missing or too old; the hint is the command that installs it."""


class StoreError(PipelineError):
    """The artifact store cannot be read or written."""


class DiskFullError(StoreError):
    """No space left where the artifacts or the build folder are."""


class StageFailed(PipelineError, StageError):
    """A stage refused its input; the message is the stage's own, after its kind."""

    def __init__(self, kind: str, error: StageError) -> None:
        PipelineError.__init__(self, f"{kind}: {error.message}", hint=error.hint)
        self.kind = kind


class StageCrashed(PipelineError):
    """A stage raised an exception that is not a StageError."""

    def __init__(self, kind: str, error: BaseException, log: str) -> None:
        where = f"the traceback is in {log}" if log else ""
        super().__init__(f"{kind}: unexpected {type(error).__name__}: {first_line(error)}", hint=where)
        self.kind = kind


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, cut to what fits on a screen."""
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else "no message"
    return text if len(text) <= 200 else text[:197] + "..."


def is_disk_full(error: BaseException) -> bool:
    """Whether an exception says that no space (or quota) is left."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'layout'?`, or '' when nothing known is near `word`."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


def list_known(what: str, known: Iterable[str]) -> str:
    """`known targets: a, b, c`, in the order given."""
    return f"known {what}: {', '.join(known) or '(none)'}"
