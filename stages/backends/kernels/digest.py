"""Digest of a kernel's code. Counts of another version of the kernel are not reused."""

import hashlib
import inspect
import re
from functools import cache
from pathlib import Path

from stages.backends.kernels.definitions import definitions_of
from stages.backends.kernels.folder import KernelFolder
from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.places import include_path, kernel_file
from stages.support.system.loaded_code import package_files

_BACKENDS = Path(__file__).resolve().parents[1]
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIGITS = 16


def kernel_digest(kernel: Kernel) -> str:
    """Return 16 hexadecimal digits over the kernel's C, assembly, included files and Python.

    Its Python is the definitions that the class uses, directly or not (stages.backends.kernels.definitions). Comments,
    docstrings, white space and modules outside of stages/backends do not count.
    """
    return _cached(type(kernel), (*kernel.sources, *kernel.headers), kernel.folder)


@cache
def _cached(cls: type[Kernel], files: tuple[str, ...], folder: KernelFolder) -> str:
    code = code_of(Path(inspect.getfile(cls)), cls.__qualname__, files, include=folder.include)
    if not folder.path.is_relative_to(_BACKENDS):  # a plug-in's: all of it, besides what it uses of ours
        code |= {name: path.read_bytes().hex() for name, path in package_files(folder.path).items()}
    code |= {
        path.name: path.read_text() for path in sorted(folder.path.parents[1].glob(f"instructions/{folder.name}-*"))
    }
    return digest(code | ({"flags": " ".join(folder.flags)} if folder.flags else {}))


def digest(code: dict[str, str]) -> str:
    """Return 16 hexadecimal digits over named texts."""
    text = "\0".join(f"{name}\0{code[name]}" for name in sorted(code))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def code_of(
    module: Path, name: str, files: tuple[str, ...], root: Path = _BACKENDS, include: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return the code of class `name` and its C `files`, by file or `module:definition`.

    `root` is the folder of all families, `include` the header folders that the folder's record names.
    """
    folder = module.parent
    places = (*(include_path(folder, include_name) for include_name in include), root / "kernels" / "include")
    code = {_shown(path, root): _c_meaning(path.read_text()) for path in _c_files(folder, files, places)}
    return code | definitions_of(module, name.split(".")[0], root)


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _c_files(folder: Path, files: tuple[str, ...], include: tuple[Path, ...]) -> set[Path]:
    """Return the files and all that they include, from their folder or from `include`."""
    visited: set[Path] = set()
    waiting = [kernel_file(folder, name) for name in files]
    while waiting:
        path = waiting.pop().resolve()
        if path in visited or not path.is_file():  # a file that is not there is emit's error
            continue
        visited.add(path)
        for name in _included(path.read_text()):
            places = (place / name for place in (path.parent, *include))
            waiting += [place for place in places if place.is_file()][:1]
    return visited


@cache
def _included(text: str) -> list[str]:
    return _INCLUDE.findall(text)


@cache
def _c_meaning(text: str) -> str:
    return " ".join(_COMMENT.sub(" ", text).split())
