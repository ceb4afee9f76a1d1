"""Exceptions of the pipeline.

    PipelineError            printed as one to five lines, without a traceback
      RecipeError            a recipe, pipeline.yaml or an override is wrong; has file, line and column
      ToolError              a tool is missing or too old
      StoreError             the artifact store cannot be read or written
        DiskFullError
      StageFailed            a stage refused its input (also a StageError)
      InputChanged           a file or tool that a stage reads changed after planning
      StageCrashed           a stage raised an unexpected exception; the traceback is in log.txt

Stages raise StageError only.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from stages.base import StageError
from stages.support.messages import escape
from stages.support.messages.wording import in_lines
from stages.support.system.installation import REINSTALL_HINT
from stages.support.system.system_limits import system_limit

_MAX_NAMES = 120
_MAX_CHARACTERS = 1500  # three of the five lines of a message


class PipelineError(Exception):
    """A failure with a message for the user; `hint` gives the remedy."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}\n{hint}" if hint else message)
        self.message = message
        self.hint = hint


class RecipeError(PipelineError):
    """A mistake in a recipe, in pipeline.yaml or on the command line.

    file, line, column: position (line and column from 1); '' and 0 for a value of the command line.
    """

    def __init__(self, message: str, *, hint: str = "", file: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line
        self.column = column


class ToolError(PipelineError):
    """A tool is missing or too old; the hint is the command to install it."""


class StoreError(PipelineError):
    """The artifact store cannot be read or written."""


class DiskFullError(StoreError):
    """No space left on the disk of the artifact store or the build folder."""


class StageFailed(PipelineError, StageError):
    """A stage refused its input; the message is the stage's, prefixed by its name.

    located: the error with the position of the recipe value that caused it, if known (pipeline.documents.sources).
    """

    def __init__(self, kind: str, error: StageError, located: RecipeError | None = None) -> None:
        message = f"{kind}: {error.message}" if located is None else located.message
        PipelineError.__init__(self, message, hint=error.hint if located is None else located.hint)
        self.kind = kind
        self.at = error.at


class InputChanged(PipelineError):
    """A file or tool that a stage reads changed after planning; `what` names it."""

    def __init__(self, kind: str, what: str, when: str) -> None:
        super().__init__(f"{kind}: {what} changed {when}", hint=f"the result of {kind} was not stored; run again")
        self.kind = kind
        self.what = what


class StageCrashed(PipelineError):
    """A stage raised an unexpected exception; `reads` is the user's file that it read, or ''."""

    def __init__(self, kind: str, error: BaseException | str, log: str, reads: str = "") -> None:
        advice = f"the traceback is in {log}" if log else ""
        what = error if isinstance(error, str) else describe_unexpected(error)
        if reads:
            what = f"cannot read {escape.name(reads, 200)}: {what.removeprefix('unexpected ')}"
            advice = (
                f"Export the file again. If that does not help, report it with the file{f' and {log}' if log else ''}"
            )
        super().__init__(f"{kind}: {what}", hint=advice)
        self.kind = kind


def describe_unexpected(error: BaseException) -> str:
    """Describe an unexpected exception in one line, with its notes."""
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    return f"unexpected {type(error).__name__}{escape.shortened(notes, 200)}: {first_line(error)}"


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, shortened to 200 characters."""
    lines = str(error).strip().splitlines()
    return escape.shortened(lines[0] if lines else "no message", 200)


def environment_error(error: BaseException, root: Path) -> StageError | None:
    """Return the error for an exception caused by the machine or files of `root`, or None."""
    limit = system_limit(error)
    if limit is not None:
        return StageError(limit[0], hint=limit[1])
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in ("stages", "pipeline"):
        return StageError(f"module {error.name} cannot be imported: {first_line(error)}", hint=REINSTALL_HINT)
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        path = Path(os.fsdecode(error.filename))
        if path.is_relative_to(root):
            problem = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be used: {error.strerror}"
            return StageError(f"{path.relative_to(root)} {problem}", hint=REINSTALL_HINT)
    return None


def list_known(what: str, known: Iterable[str]) -> str:
    """Return `known targets: a, b, c`, wrapped to lines; of many names only the first."""
    names = [escape.name(name) for name in known]
    shown = names[:_MAX_NAMES]
    while sum(map(len, shown)) + 2 * len(shown) > _MAX_CHARACTERS:
        shown.pop()
    more = f", ... and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return in_lines(f"known {what}: {', '.join(shown) or '(none)'}{more}")
