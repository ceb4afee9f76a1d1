"""Record the source from which each module of the stages was compiled.

Action keys contain digests of code, so they must name the code that runs. Two things can break that:

- Python takes bytecode from `__pycache__` if size and modification time (in seconds) of the source match. An edit that
  keeps both runs the old code.
- A module stays as it was imported when its file changes later.

So `RecordingLoader` loads the modules of `stages`. It reads the source, records its digest, and takes bytecode only if
it was compiled from these bytes (PEP 552, checked hash). Importing `stages` installs it in each process.

Stages of plug-ins may be loaded earlier. For these `note_class` records the source when the class is created.
"""

import contextlib
import hashlib
import importlib.util
import marshal
import os
import sys
import threading
from collections.abc import Container, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from stages.support.system.atomic_write import write_atomically
from stages.support.system.installation import INSTALLATION, default_cache, is_clone

_PACKAGE = "stages"
_CLONE = is_clone()
# Modules that a plug-in imports from these packages are not part of the plug-in.
_PROJECT = ("pipeline", _PACKAGE)
# PEP 552: the pyc contains a hash of the source, which is compared.
_CHECKED_HASH = (0b11).to_bytes(4, "little")

# Paths of the modules that a thread loads, inside a block of `recorded_loads`.
_loading = threading.local()
# sha256 of the source that each module was compiled from, by real path; '' if it differs from the file.
_loaded: dict[str, str] = {}


def loaded_digest(path: Path) -> str | None:
    """Return the sha256 of the source that the module at `path` was compiled from.

    None if this process has not loaded it, '' if its bytecode is from another source than the file.
    """
    return _loaded.get(os.path.realpath(path))


@contextlib.contextmanager
def recorded_loads() -> Iterator[list[Path]]:
    """Yield a list that collects the files of stage modules that this thread loads."""
    before = getattr(_loading, "paths", None)
    paths: list[Path] = []
    _loading.paths = paths
    try:
        yield paths
    finally:
        _loading.paths = before


class RecordingLoader(SourceFileLoader):
    """Compile modules from the bytes that are recorded; use hash-checked bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the module's code. Raises ImportError, SyntaxError, OSError."""
        path = self.get_filename(fullname)
        source = self.get_data(path)
        paths = getattr(_loading, "paths", None)
        if paths is not None:
            paths.append(Path(path))
        _loaded[os.path.realpath(path)] = hashlib.sha256(source).hexdigest()
        pyc_path = _bytecode(path)
        header = importlib.util.MAGIC_NUMBER + _CHECKED_HASH + importlib.util.source_hash(source)
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            pyc = pyc_path.read_bytes()
            if pyc.startswith(header):
                code = marshal.loads(memoryview(pyc)[len(header) :])
                # After a move of the project, tracebacks would show the old path.
                if isinstance(code, CodeType) and code.co_filename == path:
                    return code
        code = self.source_to_code(source, path)
        assert isinstance(code, CodeType)
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                write_atomically(pyc_path, header + marshal.dumps(code))
        return code


# Packages whose modules RecordingLoader loads. `record` adds those of plug-ins.
_recorded = {_PACKAGE}


def record(package: str) -> None:
    """Load modules of another package with RecordingLoader from now on."""
    _recorded.add(package)


def make_package(name: str, folder: Path) -> None:
    """Make the modules below a folder importable as package `outer.name`."""
    for part, path in ((name.partition(".")[0], []), (name, [str(folder)])):
        if part not in sys.modules:
            sys.modules[part] = ModuleType(part)
            sys.modules[part].__path__ = path
    record(name.partition(".")[0])


class _Finder:
    """Find modules of `stages` and of plug-ins as Python does, for RecordingLoader."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a recorded module with RecordingLoader; None for others."""
        package, dot, _ = name.partition(".")
        if package not in _recorded or (not dot and package == _PACKAGE):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = RecordingLoader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """Load modules of `stages` with RecordingLoader from now on."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)  # a class whose method is static serves as a finder


def note_class(cls: type) -> None:
    """Record the sources of a class's module and its neighbours, unless the loader did.

    Called while the class statement runs: the file is then what Python has just compiled.
    """
    module = sys.modules.get(cls.__module__)
    if module is not None and isinstance(getattr(module, "__loader__", None), RecordingLoader):
        return
    own_file = source_file(cls)
    if own_file is None:
        return
    at_top_level = "<locals>" not in cls.__qualname__
    modules = {getattr(module_, "__file__", None): module_ for module_ in list(sys.modules.values())}
    for path in {own_file, *plug_in_files(cls).values()}:
        real = os.path.realpath(path)
        if (path == own_file and at_top_level) or (str(path) in modules and real not in _loaded):
            _loaded[real] = _digest_of_loaded(path, modules.get(str(path)))


def source_file(cls: type) -> Path | None:
    """Return the file of a class; None for one from the prompt or from a call of `type`."""
    # For classes that `type` creates with ABC's metaclass, `__module__` is `abc`.
    module = None if cls.__module__ in sys.stdlib_module_names else sys.modules.get(cls.__module__)
    name = getattr(module, "__file__", None) or next((code.co_filename for code in _functions(cls)), None)
    path = Path(os.path.abspath(name)) if name else None  # noqa: PTH100 - links stay: Python's names have them
    return path if path is not None and path.is_file() else None


def has_code(cls: type) -> bool:
    """Whether a class defines functions itself."""
    return bool(_functions(cls))


def _functions(cls: type) -> list[CodeType]:
    codes = (getattr(value, "__code__", None) for value in vars(cls).values())
    return [code for code in codes if isinstance(code, CodeType)]


def class_files(cls: type, known: Container[Path], excluded: Container[type]) -> dict[str, Path]:
    """Return the files of a class and its bases, except `excluded` and `known` files.

    Names are as in plug_in_files. Raises LookupError with the name of a class without a file.
    """
    files: dict[str, Path] = {}
    for base in cls.__mro__:
        if base in excluded:
            continue
        path = source_file(base)
        if path is None and has_code(base):
            raise LookupError(base.__qualname__)
        if path is not None and path not in known:
            files |= plug_in_files(base)
    return files


def plug_in_files(cls: type) -> dict[str, Path]:
    """Return the files of a class outside of the project, by names without its location.

    These are all files of its package. Without a package: its module and the modules beside it that this imports,
    directly or not. {} for a class without a file.
    """
    path = source_file(cls)
    if path is None:
        return {}
    package = _package(path.parent)
    if package is not None:
        return {file.relative_to(package.parent).as_posix(): file for file in _files_below(package)}
    # `tests.unit.x` in a folder without __init__.py: names start at the folder of `tests`.
    depth = cls.__module__.count(".")
    if path.parent.name in ("site-packages", "dist-packages"):
        return {path.name: path}
    base = path.parents[depth] if cls.__module__.split(".")[-1] == path.stem else path.parent
    files: dict[str, Path] = {}
    waiting = [path]
    while waiting:
        module = waiting.pop()
        # Relative to the class's file: its folder may lack an __init__.py, or be a script's.
        name = Path(os.path.relpath(module, path.parent)).as_posix()
        if name not in files:
            files[name] = module
            waiting += _imported(module, base)
    return dict(sorted(files.items()))


def package_files(place: Path) -> dict[str, Path]:
    """Return the files of a plug-in's module or of its outermost package, by name."""
    package = _package(place if place.is_dir() else place.parent)
    if package is None:
        return {place.name: place}
    return {file.relative_to(package.parent).as_posix(): file for file in _files_below(package)}


def _package(folder: Path) -> Path | None:
    """Return the outermost package of a folder; None if it is in no package."""
    package = None
    while (folder / "__init__.py").is_file():
        package, folder = folder, folder.parent
    return package


def _files_below(folder: Path) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path for path in files if not path.name.startswith("."))


def _imported(module: Path, base: Path) -> Iterator[Path]:
    """Yield the files below `base` that a module imports, anywhere in it."""
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
    """Return the sha256 of a module's source; '' if Python took bytecode of another source."""
    try:
        source, info = path.read_bytes(), path.stat()
        cached = getattr(module, "__cached__", None)
        if cached and type(getattr(module, "__loader__", None)) is SourceFileLoader and Path(cached).is_file():
            pyc = Path(cached).read_bytes()
            stamp = [int(info.st_mtime) & 0xFFFFFFFF, info.st_size & 0xFFFFFFFF]
            if pyc[4:16] == b"".join(number.to_bytes(4, "little") for number in (0, *stamp)):
                code = marshal.loads(memoryview(pyc)[16:])
                if code != compile(source, code.co_filename, "exec", dont_inherit=True):
                    return ""
    except (OSError, ValueError, EOFError, TypeError, SyntaxError):
        return ""
    return hashlib.sha256(source).hexdigest()


def _bytecode(path: str) -> Path:
    """Return the path for a module's bytecode; never inside an installed package."""
    usual = Path(importlib.util.cache_from_source(path))
    if _CLONE or not usual.is_relative_to(INSTALLATION):
        return usual
    return default_cache() / "bytecode" / usual.relative_to(INSTALLATION)
