"""The files that a recipe names as inputs: paths, and globs for several of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stages.base import StageError
from stages.messages import escape
from stages.messages.wording import several
from stages.samples.globs import MOST_LOOKED_AT, TooMany, expand, fits, is_glob
from stages.system.pathname import located, what_lies_at

Place = tuple[str | int, ...]  # a path in the recipe


def files_named(patterns: Sequence[str], root: Path, at: Place) -> dict[str, Path]:
    """The files that the entries of the list at `at` mean, by the name to show, in order.

    Raises StageError for a glob without a match.
    """
    found: dict[str, Path] = {}
    for number, pattern in enumerate(patterns):
        found |= _files_of(pattern, root, (*at, number))
    return found


def _files_of(pattern: str, root: Path, at: Place) -> dict[str, Path]:
    path = located(pattern, root)
    if not is_glob(pattern):
        return {pattern: path}
    try:
        matches, others = expand(path)
    except TooMany as error:
        raise StageError(
            f"{pattern} stands for too much: more than {MOST_LOOKED_AT:,} names to look at, in {error} and elsewhere",
            hint="name the folder more closely",
            at=at,
        ) from None
    if not matches:
        found = several([f"{other.name} is {what_lies_at(other)}" for other in others], 3)
        hint = f"what matches is no file: {found}" if others else f"it is looked up in {root}"
        raise StageError(f"no file matches {pattern}", hint=escape.name(hint, 300), at=at)
    absolute = Path(pattern).expanduser().is_absolute()
    return {str(match) if absolute else match.relative_to(root).as_posix(): match for match in matches}


def blamed(patterns: Sequence[str], name: str, at: Place) -> Place:
    """The entry of the list at `at` that a file of `files_named` comes from."""
    for number, pattern in enumerate(patterns):
        if pattern == name or (is_glob(pattern) and fits(Path(pattern).expanduser(), Path(name))):
            return (*at, number)
    return at
