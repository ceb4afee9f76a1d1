"""Globs in a recipe's `inputs.files`: shell patterns, with a limit on the search.

`*`, `?` and `[...]` match parts of a name, `**` any folders. A name that begins with a dot matches only patterns that
do, and `**` does not follow links. After `MOST_LOOKED_AT` names the search fails.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

MOST_LOOKED_AT = 20_000
_SPECIAL = frozenset("*?[")


class TooMany(Exception):
    """A pattern requires too long a search; the argument is the folder at its end."""


def is_glob(pattern: str) -> bool:
    """Whether a name has wildcards."""
    return not _SPECIAL.isdisjoint(pattern)


def expand(pattern: Path) -> tuple[list[Path], list[Path]]:
    """Return the files that an absolute pattern matches, and other matches; both sorted.

    Raises TooMany.
    """
    search = _Search()
    files = sorted(set(search.below(Path(pattern.anchor), pattern.parts[1:])))
    return files, sorted(search.others)


def fits(pattern: PurePath, path: PurePath) -> bool:
    """Whether the pattern matches a file of `expand`.

    Both are absolute, or relative to the same folder.
    """
    return _fits(pattern.parts, path.parts)


def _fits(parts: tuple[str, ...], names: tuple[str, ...]) -> bool:
    if not parts or not names:
        return not names and all(part == "**" for part in parts)
    if parts[0] == "**":
        return _fits(parts[1:], names) or _fits(parts, names[1:])
    return fnmatchcase(names[0], parts[0]) and _fits(parts[1:], names[1:])


class _Search:
    def __init__(self) -> None:
        self._seen = 0
        self.others: set[Path] = set()

    def below(self, folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
        """Yield the files below `folder` that the parts of a pattern match."""
        while parts and not is_glob(parts[0]):
            folder, parts = folder / parts[0], parts[1:]
        if not parts:
            # Some entries in /proc are unreadable even for root.
            with suppress(OSError):
                if folder.is_file():
                    yield folder
                elif os.path.lexists(folder):
                    self.others.add(folder)
            return
        first, tail = parts[0], parts[1:]
        if first == "**":
            while tail[:1] == ("**",):
                tail = tail[1:]
            tail = tail or ("*",)
            parts = ("**", *tail)
            yield from self.below(folder, tail)
        for entry in self._entries(folder):
            path = folder / entry.name
            if first == "**":
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    yield from self.below(path, parts)
            elif fnmatchcase(entry.name, first) and entry.name.startswith(".") <= first.startswith("."):
                yield from self.below(path, tail)

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        listed: list[os.DirEntry[str]] = []
        self._seen += 1
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._seen += 1
                    if self._seen > MOST_LOOKED_AT:
                        raise TooMany(folder)
                    listed.append(entry)
        except OSError:
            # An unreadable folder has no matches.
            return []
        return listed
