"""Globs in a recipe's `inputs.files`: as in a shell, and never the whole machine.

`*`, `?` and `[...]` stand for parts of a name, `**` for any folders; a name that begins with a dot is only matched by a
pattern that does, and `**` follows no links. Looking stops with an error after `MOST_LOOKED_AT` names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

MOST_LOOKED_AT = 20_000
_SPECIAL = frozenset("*?[")


class TooMany(Exception):
    """A pattern makes one look at too much; the argument is the folder at which it was given up."""


def is_glob(pattern: str) -> bool:
    """Whether a name has anything to expand."""
    return not _SPECIAL.isdisjoint(pattern)


def expand(pattern: Path) -> tuple[list[Path], list[Path]]:
    """The files that an absolute pattern matches, and what it matches that is no file; both sorted. Raises TooMany."""
    search = _Search()
    found = sorted(set(search.below(Path(pattern.anchor), pattern.parts[1:])))
    return found, sorted(search.others)


def fits(pattern: PurePath, path: PurePath) -> bool:
    """Whether a file that `expand` found may have come from this pattern; both relative to the same, or absolute."""
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
        """The files below `folder` that the parts of a pattern match."""
        while parts and not is_glob(parts[0]):
            folder, parts = folder / parts[0], parts[1:]
        if not parts:
            # /proc has entries that not even root may look behind.
            with suppress(OSError):
                if folder.is_file():
                    yield folder
                elif os.path.lexists(folder):
                    self.others.add(folder)
            return
        first, rest = parts[0], parts[1:]
        if first == "**":
            while rest[:1] == ("**",):
                rest = rest[1:]
            rest = rest or ("*",)
            parts = ("**", *rest)
            yield from self.below(folder, rest)
        for entry in self._entries(folder):
            path = folder / entry.name
            if first == "**":
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    yield from self.below(path, parts)
            elif fnmatchcase(entry.name, first) and entry.name.startswith(".") <= first.startswith("."):
                yield from self.below(path, rest)

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        found: list[os.DirEntry[str]] = []
        self._seen += 1
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._seen += 1
                    if self._seen > MOST_LOOKED_AT:
                        raise TooMany(folder)
                    found.append(entry)
        except OSError:
            # What cannot be read has nothing that matches.
            return []
        return found
