"""Which source each module of the stages was compiled from, so that a key never names other code than what ran.

Python takes bytecode from `__pycache__` when the source has the size and the second of the last change that are noted
there: an edit that keeps both, or puts an old time back, runs the old code. And what a process has imported stays, when
the file changes later. So modules of `stages` are loaded by `RecordingLoader`: it reads the source, notes its digest,
and takes bytecode only when that was made from these very bytes (PEP 552, checked hash). Importing `stages` installs
it, in each process.

A stage of a plug-in is loaded before this can be in place; for it `note_class` looks when its class is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import marshal
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from stages.support.system.atomic_write import write_atomically
from stages.support.system.installation import INSTALLATION, default_cache, is_clone

_PACKAGE = "stages"
_CLONE = is_clone()
# The pipeline and its stages: what a plug-in imports of them is no part of the plug-in.
_PROJECT = ("pipeline", _PACKAGE)
# PEP 552: the pyc has a hash of the source, and it is to be compared.
_CHECKED_HASH = (0b11).to_bytes(4, "little")

# Paths of the modules that each thread loads, where somebody asked for them.
_loading = threading.local()
# sha256 of the source that a module of this process was compiled from, by real path; '' when it was another one.
_loaded: dict[str, str] = {}


def loaded_digest(path: Path) -> str | None:
    """sha256 of what the module at `path` was compiled from in this process.

    None when it is not loaded, '' when its bytecode is of another source than the file that was there.
    """
    return _loaded.get(os.path.realpath(path))


@contextlib.contextmanager
def loads() -> Iterator[list[Path]]:
    """A list that gets the files of the modules of the stages that this thread loads while it lasts."""
    before = getattr(_loading, "paths", None)
    found: list[Path] = []
    _loading.paths = found
    try:
        yield found
    finally:
        _loading.paths = before


class RecordingLoader(SourceFileLoader):
    """Compiles a module from the bytes that it notes; uses and writes bytecode that is checked by hash."""

    def get_code(self, fullname: str) -> CodeType:
        """The module's code. Raises ImportError, SyntaxError, OSError."""
        path = self.get_filename(fullname)
        source = self.get_data(path)
        paths = getattr(_loading, "paths", None)
        if paths is not None:
            paths.append(Path(path))
        _loaded[os.path.realpath(path)] = hashlib.sha256(source).hexdigest()
        place = _bytecode(path)
        header = importlib.util.MAGIC_NUMBER + _CHECKED_HASH + importlib.util.source_hash(source)
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            kept = place.read_bytes()
            if kept.startswith(header):
                code = marshal.loads(memoryview(kept)[len(header) :])
                # A project that was moved would show its old places in tracebacks.
                if isinstance(code, CodeType) and code.co_filename == path:
                    return code
        code = self.source_to_code(source, path)
        assert isinstance(code, CodeType)
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                write_atomically(place, header + marshal.dumps(code))
        return code


# Packages whose modules are loaded so; those of plug-ins come in addition.
_recorded = {_PACKAGE}


def record(package: str) -> None:
    """Have modules of another package loaded by RecordingLoader too, from now on."""
    _recorded.add(package)


def make_package(name: str, folder: Path) -> None:
    """Let the modules below a folder be imported as those of a package, `outer.name`, which no file makes."""
    for part, path in ((name.partition(".")[0], []), (name, [str(folder)])):
        if part not in sys.modules:
            sys.modules[part] = ModuleType(part)
            sys.modules[part].__path__ = path
    record(name.partition(".")[0])


class _Finder:
    """Finds modules of `stages` and of plug-ins as Python does, and has them loaded by RecordingLoader."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, dot, _ = name.partition(".")
        if package not in _recorded or (not dot and package == _PACKAGE):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = RecordingLoader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """Have modules of `stages` loaded by RecordingLoader from now on."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)  # a class whose method is static serves as a finder


def note_class(cls: type) -> None:
    """Note what the module of a class, and the modules beside it, were compiled from, unless the loader has.

    For a class statement that runs: what is read now is what Python has just compiled.
    """
    module = sys.modules.get(cls.__module__)
    if module is not None and isinstance(getattr(module, "__loader__", None), RecordingLoader):
        return
    own = source_file(cls)
    if own is None:
        return
    again = "<locals>" not in cls.__qualname__
    modules = {getattr(one, "__file__", None): one for one in list(sys.modules.values())}
    for path in {own, *plug_in_files(cls).values()}:
        real = os.path.realpath(path)
        if (path == own and again) or (str(path) in modules and real not in _loaded):
            _loaded[real] = _digest_of_loaded(path, modules.get(str(path)))


def source_file(cls: type) -> Path | None:
    """The file that a class is written in; None for one that was typed in, or made by a call of `type`."""
    # What `type` makes of a class with ABC's metaclass is said to be of the module `abc`.
    module = None if cls.__module__ in sys.stdlib_module_names else sys.modules.get(cls.__module__)
    name = getattr(module, "__file__", None) or next((code.co_filename for code in _functions(cls)), None)
    path = Path(os.path.abspath(name)) if name else None  # noqa: PTH100 - links stay: Python's names have them
    return path if path is not None and path.is_file() else None


def has_code(cls: type) -> bool:
    """Whether a class has functions of its own."""
    return bool(_functions(cls))


def _functions(cls: type) -> list[CodeType]:
    codes = (getattr(value, "__code__", None) for value in vars(cls).values())
    return [code for code in codes if isinstance(code, CodeType)]


def plug_in_files(cls: type) -> dict[str, Path]:
    """The files that a class outside of the project is made of, by name: no name depends on where they lie.

    All files of its package; or, where it is in none, its module and those beside it that this imports, directly or
    not. Empty for a class without a file.
    """
    path = source_file(cls)
    if path is None:
        return {}
    package = _package(path.parent)
    if package is not None:
        return {found.relative_to(package.parent).as_posix(): found for found in _files_below(package)}
    # `tests.unit.x` in a folder without __init__.py: names begin where `tests` lies.
    depth = cls.__module__.count(".")
    if path.parent.name in ("site-packages", "dist-packages"):
        return {path.name: path}
    base = path.parents[depth] if cls.__module__.split(".")[-1] == path.stem else path.parent
    files: dict[str, Path] = {}
    waiting = [path]
    while waiting:
        module = waiting.pop()
        # Seen from the class's own file, whose folder may be a script's or one of a package without __init__.py.
        name = Path(os.path.relpath(module, path.parent)).as_posix()
        if name not in files:
            files[name] = module
            waiting += _imported(module, base)
    return dict(sorted(files.items()))


def package_files(place: Path) -> dict[str, Path]:
    """The files of a plug-in's module or package, with those of the outermost package that it is in, by name."""
    package = _package(place if place.is_dir() else place.parent)
    if package is None:
        return {place.name: place}
    return {found.relative_to(package.parent).as_posix(): found for found in _files_below(package)}


def _package(folder: Path) -> Path | None:
    """The outermost package that a folder belongs to."""
    package = None
    while (folder / "__init__.py").is_file():
        package, folder = folder, folder.parent
    return package


def _files_below(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path for path in found if not path.name.startswith("."))


def _imported(module: Path, base: Path) -> Iterator[Path]:
    """Files below `base` that a module imports, anywhere in it."""
    import ast

    from stages.support.system.syntax import parse

    try:
        tree = parse(module.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    names: list[tuple[Path, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(folder, alias.name) for alias in node.names for folder in (base, module.parent)]
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            folders = (module.parents[node.level - 1],) if node.level else (base, module.parent)
            parts = [start, *(f"{start}.{alias.name}".lstrip(".") for alias in node.names)]
            names += [(folder, part) for part in parts if part for folder in folders]
    for folder, name in names:
        place = folder.joinpath(*name.split("."))
        if name.split(".")[0] in _PROJECT or not place.is_relative_to(base):
            continue
        if (place / "__init__.py").is_file():
            yield from (path for path in _files_below(place) if path.suffix == ".py")
        elif place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")


def _digest_of_loaded(path: Path, module: ModuleType | None) -> str:
    """sha256 of a module's source, '' when Python took bytecode of another source."""
    try:
        source, info = path.read_bytes(), path.stat()
        cached = getattr(module, "__cached__", None)
        if cached and type(getattr(module, "__loader__", None)) is SourceFileLoader and Path(cached).is_file():
            kept = Path(cached).read_bytes()
            taken_for = [int(info.st_mtime) & 0xFFFFFFFF, info.st_size & 0xFFFFFFFF]
            if kept[4:16] == b"".join(number.to_bytes(4, "little") for number in (0, *taken_for)):
                code = marshal.loads(memoryview(kept)[16:])
                if code != compile(source, code.co_filename, "exec", dont_inherit=True):
                    return ""
    except (OSError, ValueError, EOFError, TypeError, SyntaxError):
        return ""
    return hashlib.sha256(source).hexdigest()


def _bytecode(path: str) -> Path:
    """Where the bytecode of a module is kept: below an installation that is no clone nothing is written."""
    usual = Path(importlib.util.cache_from_source(path))
    if _CLONE or not usual.is_relative_to(INSTALLATION):
        return usual
    return default_cache() / "bytecode" / usual.relative_to(INSTALLATION)
