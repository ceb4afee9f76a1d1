"""Import graph of `stages`: the modules that code imports are part of its keys.

Imports are read from the source, anywhere except under TYPE_CHECKING. Imports by computed names are not visible, except
for all modules of a package (`pkgutil.iter_modules`). `ActionInputs.sources` must name them.
"""

import ast
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.artifacts.digest import DigestCache
from stages.support.system.caches import read_cache, write_cache
from stages.support.system.syntax import parse

_PACKAGE = "stages."
_STAGE = re.compile(rb"^STAGE = |import STAGE\b", re.MULTILINE)
_FORMAT = 4
# Marks a module that iterates over its package with pkgutil.
_ALL_MODULES = "*"
# Marks the `__init__.py` of a stage.
_STAGE_PACKAGE = "="
# Maximum number of files in the cache.
_MAX_FILES = 5000
# Methods with imports that are not part of keys:
# - methods of a stage that are called before or after it runs; their results are in the key or do not affect the output
# - the reference implementation of operators, which only tests call
_IGNORED_METHODS = (*("inputs", "preflight", "render"), *("compute", "sums", "requantized", "taps"))
# Declarations without behaviour; their values are in the keys.
DECLARATIONS = frozenset(
    f"stages/{name}"
    for name in (
        *("__init__.py", "base.py", "support/__init__.py", "ir/__init__.py", "backends/__init__.py"),
        *("support/tool.py", "support/action_inputs.py", "support/lazy.py"),
        *("support/messages/stage_error.py", "support/options/strict_model.py"),
        *("support/system/__init__.py", "support/system/loaded_code.py", "support/system/pathname.py"),
        *("backends/targets/__init__.py", "backends/targets/memory.py", "backends/targets/spec.py"),
        *("ir/models/__init__.py", "ir/models/spec.py"),
    )
)


class Imports:
    """Imports of the modules of an installation.

    The imports of a file are cached by its digest in the file `cache`. Internally, paths are strings for speed.
    """

    def __init__(self, installation: Path, digests: DigestCache, cache: Path) -> None:
        self._declarations = {str(installation / name) for name in DECLARATIONS}
        self._digests = digests
        self._cache = cache
        loaded = read_cache(cache)
        is_valid = isinstance(loaded, dict) and loaded.get("format") == _FORMAT
        self._names: dict[str, list[str]] = loaded["names"] if is_valid else {}
        self._used: set[str] = set()
        self._changed = False
        self._places = dict(_modules_below(installation))
        self._names_in_key = {place: _relative_name(name, place) for name, place in self._places.items()}
        self._paths: dict[str, Path] = {}
        self._modules: dict[str, list[str]] = {}
        self._imported: dict[str, tuple[str, ...]] = {}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._executed: dict[str, tuple[str, ...]] = {}

    def followed(self, files: Iterable[Path]) -> dict[str, Path]:
        """Return all modules that files import, directly or indirectly, by name. Raises OSError.

        Not included: the files themselves, DECLARATIONS, and the `__init__.py` of a stage that is imported only as a
        package.
        """
        start = {str(path): path for path in files}
        self._paths.update(start)
        waiting, seen = list(start), set(start)
        while waiting:
            added = [path for path in self._imports(waiting.pop()) if path not in seen]
            seen.update(added)
            waiting += added
        return dict(sorted((self._names_in_key[path], self._path(path)) for path in seen.difference(start)))

    def counts(self, path: Path) -> bool:
        """Return whether a file below stages/ must be in the key of a stage that loads it."""
        return str(path) not in self._declarations and not self._declares_a_stage(str(path))

    def save(self) -> None:
        """Write the cache if it changed; write errors are ignored."""
        if self._changed:
            if len(self._names) > _MAX_FILES:
                # Drop entries of older code.
                self._names = {digest: names for digest, names in self._names.items() if digest in self._used}
            write_cache(self._cache, {"format": _FORMAT, "names": self._names})
            self._changed = False

    def _path(self, place: str) -> Path:
        if place not in self._paths:
            self._paths[place] = Path(place)
        return self._paths[place]

    def _imports(self, path: str) -> tuple[str, ...]:
        if path not in self._imported:
            names = self._imported_names(path) if path.endswith(".py") else []
            places = [place for name in names for place in self._executed_by(name)]
            if _ALL_MODULES in names:
                folder = os.path.dirname(path)  # noqa: PTH120 - texts
                places += sorted(place for place in self._names_in_key if os.path.dirname(place) == folder)  # noqa: PTH120
            self._imported[path] = tuple(dict.fromkeys(places))
        return self._imported[path]

    def _executed_by(self, name: str) -> tuple[str, ...]:
        """Return the files that run when a name is imported: its packages and its module."""
        if name not in self._executed:
            chain = self._chain(name)
            self._executed[name] = tuple(
                place
                for place in chain
                if place not in self._declarations and (place == chain[-1] or not self._declares_a_stage(place))
            )
        return self._executed[name]

    def _chain(self, name: str) -> tuple[str, ...]:
        """Return the files of the packages and the module of a name, without `stages` itself."""
        outer = name.rpartition(".")[0]
        if not outer:
            return ()
        if name not in self._chains:
            place = self._places.get(name)
            self._chains[name] = self._chain(outer) if place is None else (*self._chain(outer), place)
        return self._chains[name]

    def _declares_a_stage(self, path: str) -> bool:
        """Return whether a file is the `__init__.py` of a stage."""
        return path.endswith("/__init__.py") and _STAGE_PACKAGE in self._imported_names(path)

    def _imported_names(self, path: str) -> list[str]:
        """Return the names below `stages` that a file imports, and the markers."""
        if path not in self._modules:
            self._modules[path] = self._read(self._path(path))
        return self._modules[path]

    def _read(self, path: Path) -> list[str]:
        digest = self._digests.digest(path)
        self._used.add(digest)
        if digest not in self._names:
            text = path.read_bytes()
            declares = [_STAGE_PACKAGE] if _STAGE.search(text) else []
            try:
                tree = parse(text)
            except (SyntaxError, ValueError):
                # Python reports it when the file runs.
                return declares
            self._names[digest] = sorted({*_import_names(tree), *declares})
            self._changed = True
        return self._names[digest]


def _modules_below(root: Path) -> Iterator[tuple[str, str]]:
    """Yield name and file of each module of stages/; the file of a package is `__init__.py`."""
    for folder, folders, files in os.walk(root / "stages"):
        folders[:] = [name for name in folders if name != "__pycache__"]
        package = folder.removeprefix(f"{root}/").replace("/", ".")
        for name in files:
            if name.endswith(".py"):
                yield package if name == "__init__.py" else f"{package}.{name[:-3]}", f"{folder}/{name}"


def _relative_name(name: str, place: str) -> str:
    """Return a module's file relative to the installation."""
    path = name.replace(".", "/")
    return f"{path}/__init__.py" if place.endswith("/__init__.py") else f"{path}.py"


def _import_names(tree: ast.AST) -> Iterator[str]:
    """Yield each imported module of `stages`, and each name imported from one."""
    for node in _executed_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(_PACKAGE))
        elif isinstance(node, ast.Attribute) and node.attr == "iter_modules":
            yield _ALL_MODULES
        elif isinstance(node, ast.ImportFrom) and not node.level and f"{node.module}.".startswith(_PACKAGE):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _executed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes except under `if TYPE_CHECKING:` and in _IGNORED_METHODS."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for other in child.orelse:
                yield from _executed_nodes(other)
        elif not (isinstance(node, ast.ClassDef) and getattr(child, "name", "") in _IGNORED_METHODS):
            yield from _executed_nodes(child)


def _is_type_checking(test: Any) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"
