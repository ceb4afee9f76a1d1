"""The one error that stages raise: a mistake that the user can mend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class StageError(Exception):
    """A mistake in the input or the environment that the user can mend.

    The message is one to five lines and is printed without a traceback; `hint` says what to do next. `at` is the path
    in the recipe of the value to blame, such as ("stages", "tensorize", "rules", 0, "kernel"): the message then has
    the file, line and column where it was written.
    """

    def __init__(self, message: str, *, hint: str = "", at: tuple[str | int, ...] = ()) -> None:
        super().__init__(message if not hint else f"{message}\n{hint}")
        self.message = message
        self.hint = hint
        self.at = at


@contextmanager
def blaming(*at: str | int) -> Iterator[None]:
    """Gives a StageError that is raised inside, and blames nothing yet, its place in the recipe."""
    try:
        yield
    except StageError as error:
        error.at = error.at or at
        raise
