"""Which modules of the stages a piece of code imports, directly or not: they are in the keys that it is in.

Read from the source, which nobody has to run: imports anywhere in it count, but for those under TYPE_CHECKING. What is
imported by a name that is made up at run time is not seen, unless it is all of a package (`pkgutil.iter_modules`);
`Stage.target_sources` names it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.artifacts.digest import DigestCache, read_cache, write_cache

_PACKAGE = "stages."
_STAGE = re.compile(r"^STAGE = |import STAGE$", re.MULTILINE)
_FORMAT = 1
# Stands for all modules of a package, of one that goes through them with pkgutil.
_ALL = "*"
# How many files the cache may have.
_MOST = 5000
# Methods of a stage that are called before or after it runs: what they return is in the key, or decides nothing. And
# `compute` of a layer's operator, its reference, which only tests call, and what that calls.
_ASIDE = (
    *("foresee", "render", "tools", "model_tools", "files", "model_entry", "model_code"),
    *("target_files", "target_code", "target_sources"),
    *("compute", "sums", "requantized", "taps"),
)
# What stages, targets and models declare has no behaviour of its own; the values are in the keys.
DECLARATIONS = frozenset(
    f"stages/{name}"
    for name in (
        *("__init__.py", "base.py", "messages/stage_error.py", "options/strict_model.py"),
        *("system/__init__.py", "system/loaded_code.py", "system/pathname.py"),
        *("targets/__init__.py", "targets/memory.py", "targets/spec.py", "models/__init__.py", "models/spec.py"),
    )
)


class Imports:
    """The imports of the modules below `installation`.

    What a file imports is remembered by its digest in `cache`, which may be deleted.
    """

    def __init__(self, installation: Path, digests: DigestCache, cache: Path) -> None:
        self._root = installation
        self._declarations = {installation / name for name in DECLARATIONS}
        self._digests = digests
        self._cache = cache
        loaded = read_cache(cache)
        whole = isinstance(loaded, dict) and loaded.get("format") == _FORMAT
        self._names: dict[str, list[str]] = loaded["names"] if whole else {}
        self._used: set[str] = set()
        self._changed = False
        self._places = dict(_modules_below(installation))
        self._imported: dict[Path, tuple[Path, ...]] = {}

    def followed(self, files: Iterable[Path]) -> dict[str, Path]:
        """The modules that files import and those that these import, without the files, by name. Raises OSError.

        Without DECLARATIONS, and without the `__init__.py` of a stage from which nothing is imported: it says what the
        stage is.
        """
        given = list(files)
        waiting, seen = list(given), set(given)
        while waiting:
            fresh = [path for path in self._imports(waiting.pop()) if path not in seen]
            seen.update(fresh)
            waiting += fresh
        return dict(sorted((path.relative_to(self._root).as_posix(), path) for path in seen.difference(given)))

    def counts(self, path: Path) -> bool:
        """Whether a file below the stages has to be in the key of a stage that loads it."""
        return path not in self._declarations and not _declares_a_stage(path)

    def save(self) -> None:
        """Write the cache if it changed. One that cannot be written is dropped."""
        if self._changed:
            if len(self._names) > _MOST:
                # Most are of code as it was once.
                self._names = {digest: names for digest, names in self._names.items() if digest in self._used}
            write_cache(self._cache, {"format": _FORMAT, "names": self._names})
            self._changed = False

    def _imports(self, path: Path) -> tuple[Path, ...]:
        if path not in self._imported:
            names = self._modules(path) if path.suffix == ".py" else []
            places = [place for name in names for place in self._executed(name)]
            if _ALL in names:
                places += sorted(place for place in self._places.values() if place.parent == path.parent)
            self._imported[path] = tuple(dict.fromkeys(places))
        return self._imported[path]

    def _executed(self, name: str) -> Iterator[Path]:
        """The files that run when a name is imported: its module, and the packages that this is in."""
        parts = name.split(".")
        places = (self._places.get(".".join(parts[:length])) for length in range(2, len(parts) + 1))
        found = [place for place in places if place is not None]
        for place in found:
            if place not in self._declarations and (place == found[-1] or not _declares_a_stage(place)):
                yield place

    def _modules(self, path: Path) -> list[str]:
        """Names of modules of the stages, or of what is in them, that a file imports."""
        digest = self._digests.digest(path)
        self._used.add(digest)
        if digest not in self._names:
            try:
                tree = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError):
                # Whoever runs it says so.
                return []
            self._names[digest] = sorted(set(_named(tree)))
            self._changed = True
        return self._names[digest]


def _modules_below(root: Path) -> Iterator[tuple[str, Path]]:
    """The modules of the stages by name; a package's is its `__init__.py`."""
    for folder, folders, files in os.walk(root / "stages"):
        folders[:] = [name for name in folders if name != "__pycache__"]
        package = ".".join(Path(folder).relative_to(root).parts)
        for name in files:
            if name.endswith(".py"):
                yield package if name == "__init__.py" else f"{package}.{name[:-3]}", Path(folder, name)


@cache
def _declares_a_stage(path: Path) -> bool:
    """Whether a package is a stage's, whose `__init__.py` says what the stage is."""
    return path.name == "__init__.py" and _STAGE.search(path.read_text(encoding="utf-8")) is not None


def _named(tree: ast.AST) -> Iterator[str]:
    """Each module of the stages that is imported, and each name that is imported from one."""
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(_PACKAGE))
        elif isinstance(node, ast.Attribute) and node.attr == "iter_modules":
            yield _ALL
        elif isinstance(node, ast.ImportFrom) and not node.level and f"{node.module}.".startswith(_PACKAGE):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING:`, and those of what is no part of a stage's run."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for other in child.orelse:
                yield from _run(other)
        elif not (isinstance(node, ast.ClassDef) and getattr(child, "name", "") in _ASIDE):
            yield from _run(child)


def _is_type_checking(test: Any) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"
