"""The error that stages raise for mistakes that the user can correct."""

from collections.abc import Iterator
from contextlib import contextmanager


class StageError(Exception):
    """A mistake in the input or the environment that the user can correct.

    message  one to five lines, printed without a traceback
    hint     what to do next
    at       path in the recipe of the wrong value, such as ("stages", "tensorize", "rules", 0, "kernel"): the message
             then names file, line and column
    """

    def __init__(self, message: str, *, hint: str = "", at: tuple[str | int, ...] = ()) -> None:
        super().__init__(message if not hint else f"{message}\n{hint}")
        self.message = message
        self.hint = hint
        self.at = at


class DoesNotFit(StageError):
    """The network needs more memory than the target has; the message has the sizes."""


@contextmanager
def error_at(*at: str | int) -> Iterator[None]:
    """Set `at` of a StageError that is raised inside, unless it has one."""
    try:
        yield
    except StageError as error:
        error.at = error.at or at
        raise
