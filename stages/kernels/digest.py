"""A digest of what a kernel is made of, so that a measurement of another version of it is recognised."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.kernels.kernel import Kernel

_KERNELS = Path(__file__).resolve().parent
_ROOT = _KERNELS.parents[1]
_DESCRIPTION = {_KERNELS / name for name in ("__init__.py", "kernel.py", "registry.py", "digest.py")}
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIGITS = 16


def kernel_digest(kernel: Kernel) -> str:
    """Sixteen hexadecimal digits over the kernel's C, assembly and Python, with what these include and import.

    Comments, docstrings and white space do not count, nor do modules outside of stages/kernels.
    """
    return _digest_of(Path(inspect.getfile(type(kernel))), kernel.folder, (*kernel.sources, *kernel.headers))


@cache
def _digest_of(module: Path, folder: Path, files: tuple[str, ...]) -> str:
    parts = {_name(path): _c_meaning(path.read_text()) for path in _c_files(folder, files)}
    parts |= {_name(path): _python_meaning(path.read_text()) for path in _modules(module)}
    text = "\0".join(f"{name}\0{parts[name]}" for name in sorted(parts))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _name(path: Path) -> str:
    return path.relative_to(_KERNELS).as_posix() if path.is_relative_to(_KERNELS) else path.name


def _c_files(folder: Path, files: tuple[str, ...]) -> set[Path]:
    """The files and all they include, from their folder or from stages/kernels/include."""
    found: set[Path] = set()
    waiting = [folder / name for name in files]
    while waiting:
        path = waiting.pop().resolve()
        if path in found or not path.is_file():  # a file that is not there is emit's error
            continue
        found.add(path)
        for name in _INCLUDE.findall(path.read_text()):
            places = (path.parent / name, _KERNELS / "include" / name)
            waiting += [place for place in places if place.is_file()][:1]
    return found


def _modules(module: Path) -> set[Path]:
    """The module and those of stages/kernels that it imports, directly or not."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting += [place for place in _imports(path) if place not in _DESCRIPTION]
    return found


def _imports(path: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("stages.kernels."):
            continue
        for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
            place = _ROOT.joinpath(*str(name).split(".")).with_suffix(".py")
            if place.is_file():
                yield place


def _c_meaning(text: str) -> str:
    return " ".join(_COMMENT.sub(" ", text).split())


def _python_meaning(text: str) -> str:
    """The syntax tree without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
