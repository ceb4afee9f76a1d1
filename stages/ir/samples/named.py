"""The files that a recipe names as inputs, by paths and globs."""

from collections.abc import Sequence
from pathlib import Path

from stages.ir.samples.globs import MOST_LOOKED_AT, TooMany, expand, fits, is_glob
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import several
from stages.support.system.pathname import describe_path, located, variable_hint

Place = tuple[str | int, ...]  # a path in the recipe


def files_named(patterns: Sequence[str], root: Path, at: Place) -> dict[str, Path]:
    """Return the files of the list of patterns at `at`, by the name to show, in order.

    Raises StageError for a glob without a match.
    """
    files: dict[str, Path] = {}
    for number, pattern in enumerate(patterns):
        files |= _files_of(pattern, root, (*at, number))
    return files


def _files_of(pattern: str, root: Path, at: Place) -> dict[str, Path]:
    if not is_glob(pattern):
        return {pattern: located(pattern, root)}
    parts = Path(pattern).parts
    fixed = next(number for number, part in enumerate(parts) if is_glob(part))
    named = Path(*parts[:fixed])
    folder = located(str(named), root)
    try:
        matches, others = expand(folder.joinpath(*parts[fixed:]))
    except TooMany as error:
        raise StageError(
            f"{pattern} is too broad: the search stopped after {MOST_LOOKED_AT:,} names, in {error}",
            hint="name a deeper folder",
            at=at,
        ) from None
    if not matches:
        listed = several([f"{other.name} is {describe_path(other)}" for other in others], 3)
        where = variable_hint(pattern) or f"it is looked up in {folder}"
        hint = f"the matches are not files: {listed}" if others else where
        raise StageError(f"no file matches {pattern}", hint=escape.name(hint, 300), at=at)
    return {(named / match.relative_to(folder)).as_posix(): match for match in matches}


def blamed(patterns: Sequence[str], name: str, at: Place) -> Place:
    """Return the path of the list entry (list: `at`) that names a file of `files_named`."""
    for number, pattern in enumerate(patterns):
        if pattern == name or (is_glob(pattern) and fits(Path(pattern), Path(name))):
            return (*at, number)
    return at
