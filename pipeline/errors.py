"""The one exception tree of the pipeline.

    PipelineError            printed as one to five lines, never as a traceback
      RecipeError            a recipe, pipeline.yaml or an override is wrong; knows file, line and column
      ToolError              a tool is missing or too old
      StoreError             the artifact store cannot be read or written
        DiskFullError
      StageFailed            a stage refused its input (is also the StageError that the stage raised)
      InputChanged           a file or tool that a stage reads is not what its key says
      StageCrashed           a stage raised something it should not; the traceback is in log.txt

Whoever prints them needs no other type; stages themselves raise only StageError.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stages.base import StageError
from stages.messages import escape
from stages.messages.wording import in_lines
from stages.system.installation import WHOLE
from stages.system.system_limits import system_limit

_MOST_NAMES = 120
_MOST_LETTERS = 1500  # three lines: a message has five at most


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
    """A stage refused its input; the message is the stage's own, after its kind.

    `located` is the same message at the place in the recipe that the stage blames (pipeline.documents.sources), if it
    does.
    """

    def __init__(self, kind: str, error: StageError, located: RecipeError | None = None) -> None:
        message = f"{kind}: {error.message}" if located is None else located.message
        PipelineError.__init__(self, message, hint=error.hint if located is None else located.hint)
        self.kind = kind
        self.at = error.at


class InputChanged(PipelineError):
    """What a stage reads is not what it was when the run was planned; `what` is the file or the tool."""

    def __init__(self, kind: str, what: str, when: str) -> None:
        super().__init__(
            f"{kind}: {what} changed {when}", hint=f"nothing is stored of {kind}; run again when it stays as it is"
        )
        self.kind = kind
        self.what = what


class StageCrashed(PipelineError):
    """A stage raised an exception that is not a StageError; `reads` is the user's file that it was reading, if any."""

    def __init__(self, kind: str, error: BaseException | str, log: str, reads: str = "") -> None:
        where = f"the traceback is in {log}" if log else ""
        what = error if isinstance(error, str) else describe_unexpected(error)
        if reads:
            what = f"cannot read {escape.name(reads, 200)}: {what.removeprefix('unexpected ')}"
            where = f"Export the file again. If that does not help, report this: {where or 'give the file'}"
        super().__init__(f"{kind}: {what}", hint=where)
        self.kind = kind


def describe_unexpected(error: BaseException) -> str:
    """Describe an exception that should not be, in one line; its notes say where it was raised."""
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    return f"unexpected {type(error).__name__}{escape.shortened(notes, 200)}: {first_line(error)}"


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, cut to what fits on a screen."""
    lines = str(error).strip().splitlines()
    return escape.shortened(lines[0] if lines else "no message", 200)


def environment_error(error: BaseException, root: Path) -> StageError | None:
    """What a stage's exception says about the machine, or the project below `root`; None for a bug of the stage."""
    limit = system_limit(error)
    if limit is not None:
        return StageError(limit[0], hint=limit[1])
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in ("stages", "pipeline"):
        return StageError(f"module {error.name} cannot be imported: {first_line(error)}", hint=WHOLE)
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        path = Path(os.fsdecode(error.filename))
        if path.is_relative_to(root):
            what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be used: {error.strerror}"
            return StageError(f"{path.relative_to(root)} {what}", hint=WHOLE)
    return None


def list_known(what: str, known: Iterable[str]) -> str:
    """`known targets: a, b, c`, in the order given, in lines that are shown whole; of very many the first."""
    names = [escape.name(name) for name in known]
    shown = names[:_MOST_NAMES]
    while sum(map(len, shown)) + 2 * len(shown) > _MOST_LETTERS:
        shown.pop()
    more = f", ... and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return in_lines(f"known {what}: {', '.join(shown) or '(none)'}{more}")
