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
from pathlib import Path
from typing import Any

from pipeline.artifacts.digest import DigestCache
from stages.former_names import current_name
from stages.support.system.caches import read_cache, write_cache
from stages.support.system.syntax import parse

_PACKAGE = "stages."
_STAGE = re.compile(rb"^STAGE = |import STAGE$", re.MULTILINE)
_FORMAT = 3
# Stands for all modules of a package, of one that goes through them with pkgutil.
_ALL = "*"
# Stands among them for what the `__init__.py` of a stage has.
_A_STAGE = "="
# How many files the cache may have.
_MOST = 5000
# Methods of a stage that are called before or after it runs: what they return is in the key, or decides nothing. And
# `compute` of a layer's operator, its reference, which only tests call, and what that calls.
_ASIDE = (
    *("foresee", "render", "tools", "model_tools", "files", "model_entry", "model_code"),
    *("target_files", "target_code", "target_sources", "option_fields", "option_files"),
    *("compute", "sums", "requantized", "taps"),
)
# What stages, targets and models declare has no behaviour of its own; the values are in the keys.
DECLARATIONS = frozenset(
    f"stages/{name}"
    for name in (
        *("__init__.py", "base.py", "former_names.py", "support/__init__.py", "ir/__init__.py", "backends/__init__.py"),
        *("support/tool.py", "support/messages/stage_error.py", "support/options/strict_model.py"),
        *("support/system/__init__.py", "support/system/loaded_code.py", "support/system/pathname.py"),
        *("backends/targets/__init__.py", "backends/targets/memory.py", "backends/targets/spec.py"),
        *("ir/models/__init__.py", "ir/models/spec.py"),
    )
)


class Imports:
    """The imports of the modules below `installation`.

    What a file imports is remembered by its digest in `cache`, which may be deleted. Inside, files are texts: hundreds
    are compared for each stage.
    """

    def __init__(self, installation: Path, digests: DigestCache, cache: Path) -> None:
        self._declarations = {str(installation / name) for name in DECLARATIONS}
        self._digests = digests
        self._cache = cache
        loaded = read_cache(cache)
        whole = isinstance(loaded, dict) and loaded.get("format") == _FORMAT
        self._names: dict[str, list[str]] = loaded["names"] if whole else {}
        self._used: set[str] = set()
        self._changed = False
        self._places = dict(_modules_below(installation))
        self._shown = {place: _shown(name, place) for name, place in self._places.items()}
        self._paths: dict[str, Path] = {}
        self._modules: dict[str, list[str]] = {}
        self._imported: dict[str, tuple[str, ...]] = {}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._executed: dict[str, tuple[str, ...]] = {}

    def followed(self, files: Iterable[Path]) -> dict[str, Path]:
        """The modules that files import and those that these import, without the files, by name.

        Raises OSError.

        Without DECLARATIONS, and without the `__init__.py` of a stage from which nothing is imported: it says what the
        stage is.
        """
        given = {str(path): path for path in files}
        self._paths.update(given)
        waiting, seen = list(given), set(given)
        while waiting:
            fresh = [path for path in self._imports(waiting.pop()) if path not in seen]
            seen.update(fresh)
            waiting += fresh
        return dict(sorted((self._shown[path], self._path(path)) for path in seen.difference(given)))

    def counts(self, path: Path) -> bool:
        """Whether a file below the stages has to be in the key of a stage that loads it."""
        return str(path) not in self._declarations and not self._declares_a_stage(str(path))

    def save(self) -> None:
        """Write the cache if it changed. One that cannot be written is dropped."""
        if self._changed:
            if len(self._names) > _MOST:
                # Most are of code as it was once.
                self._names = {digest: names for digest, names in self._names.items() if digest in self._used}
            write_cache(self._cache, {"format": _FORMAT, "names": self._names})
            self._changed = False

    def _path(self, place: str) -> Path:
        if place not in self._paths:
            self._paths[place] = Path(place)
        return self._paths[place]

    def _imports(self, path: str) -> tuple[str, ...]:
        if path not in self._imported:
            names = self._found_in(path) if path.endswith(".py") else []
            places = [place for name in names for place in self._executed_by(name)]
            if _ALL in names:
                folder = os.path.dirname(path)  # noqa: PTH120 - texts
                places += sorted(place for place in self._shown if os.path.dirname(place) == folder)  # noqa: PTH120
            self._imported[path] = tuple(dict.fromkeys(places))
        return self._imported[path]

    def _executed_by(self, name: str) -> tuple[str, ...]:
        """The files that run when a name is imported: its module, and the packages that this is in."""
        if name not in self._executed:
            chain = self._chain(name)
            self._executed[name] = tuple(
                place
                for place in chain
                if place not in self._declarations and (place == chain[-1] or not self._declares_a_stage(place))
            )
        return self._executed[name]

    def _chain(self, name: str) -> tuple[str, ...]:
        """The files of a module and of the packages that it is in, the outermost first, without `stages` itself."""
        outer = name.rpartition(".")[0]
        if not outer:
            return ()
        if name not in self._chains:
            place = self._places.get(name)
            self._chains[name] = self._chain(outer) if place is None else (*self._chain(outer), place)
        return self._chains[name]

    def _declares_a_stage(self, path: str) -> bool:
        """Whether a package is a stage's, whose `__init__.py` says what the stage is."""
        return path.endswith("/__init__.py") and _A_STAGE in self._found_in(path)

    def _found_in(self, path: str) -> list[str]:
        """Names of modules of the stages, or of what is in them, that a file imports, and _A_STAGE."""
        if path not in self._modules:
            self._modules[path] = self._read(self._path(path))
        return self._modules[path]

    def _read(self, path: Path) -> list[str]:
        digest = self._digests.digest(path)
        self._used.add(digest)
        if digest not in self._names:
            text = path.read_bytes()
            declares = [_A_STAGE] if _STAGE.search(text) else []
            try:
                tree = parse(text)
            except (SyntaxError, ValueError):
                # Whoever runs it says so.
                return declares
            self._names[digest] = sorted({*_named(tree), *declares})
            self._changed = True
        return self._names[digest]


def _modules_below(root: Path) -> Iterator[tuple[str, str]]:
    """The modules of the stages by name; a package's is its `__init__.py`."""
    for folder, folders, files in os.walk(root / "stages"):
        folders[:] = [name for name in folders if name != "__pycache__"]
        package = folder.removeprefix(f"{root}/").replace("/", ".")
        for name in files:
            if name.endswith(".py"):
                yield package if name == "__init__.py" else f"{package}.{name[:-3]}", f"{folder}/{name}"


def _shown(name: str, place: str) -> str:
    """A module's file, relative to the installation."""
    path = name.replace(".", "/")
    return f"{path}/__init__.py" if place.endswith("/__init__.py") else f"{path}.py"


def _named(tree: ast.AST) -> Iterator[str]:
    """Each module of the stages that is imported, and each name that is imported from one."""
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (current_name(alias.name) for alias in node.names if alias.name.startswith(_PACKAGE))
        elif isinstance(node, ast.Attribute) and node.attr == "iter_modules":
            yield _ALL
        elif isinstance(node, ast.ImportFrom) and not node.level and f"{node.module}.".startswith(_PACKAGE):
            yield from (current_name(f"{node.module}.{alias.name}") for alias in node.names)


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
