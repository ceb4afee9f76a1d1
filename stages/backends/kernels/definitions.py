"""Collect the definitions in stages/backends that a class uses.

A module is split into its top-level definitions: functions, classes and assigned names. Each uses others, of its module
or through imports, at the top of the module or inside of the definition:

    class Pool2d(MveKernel):                    mve/base.py: MveKernel, and its uses
        def pack(self, view, params):
            from stages.backends.cortex_m.kernels.mve import packing
            return packing.panels(...)          mve/packing.py: panels and its uses; nothing else of the module

Other statements of a module count for all of its definitions. Not counted are modules outside of stages/backends,
annotations (except those of class fields) and imports by a string.
"""

import __future__

import ast
import dis
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from stages.support.system.syntax import parse

PACKAGE = "stages.backends"
_DESCRIPTION = (
    "__init__.py",
    "kernels/__init__.py",
    "kernels/folder.py",
    "kernels/kernel.py",
    "kernels/registry.py",
    "kernels/digest.py",
    "kernels/definitions.py",
)  # of PACKAGE: not code of a kernel
_ALL = "*"  # instead of a name: all of a module
_BESIDES = ""  # the name under which a module keeps what it does besides


@dataclass(frozen=True)
class _Import:
    """The target of an imported name: `name` of `module`, or the module itself.

    `level` counts the dots of a relative import.
    """

    module: str
    name: str | None = None
    level: int = 0


@dataclass(frozen=True)
class _Definition:
    """Code of a definition, the names that it uses, and its imports.

    Each name comes with the attribute that is read ('' for the object itself).
    """

    meaning: str
    uses: frozenset[tuple[str, str]]
    imports: Mapping[str, _Import]


@dataclass
class _Module:
    shown: str = ""
    definitions: dict[str, list[_Definition]] = field(default_factory=dict)
    imports: dict[str, _Import] = field(default_factory=dict)


def definitions_of(path: Path, name: str, root: Path) -> dict[str, str]:
    """Return the code of `name` in the module at `path` and of all it uses, by `module:name`.

    The whole module if it does not define the name. Modules of PACKAGE are read from the folder `root`.
    """
    walk = _Walk(root)
    walk.follow(path, name if name in walk.module(path).definitions else _ALL)
    return walk.code


@dataclass
class _Walk:
    """Follows uses from definition to definition."""

    root: Path
    code: dict[str, str] = field(default_factory=dict)
    modules: dict[Path, _Module] = field(default_factory=dict)

    def module(self, path: Path) -> _Module:
        if path not in self.modules:
            shown = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.name
            self.modules[path] = _Module() if shown in _DESCRIPTION else _parsed(shown, path.read_text())
        return self.modules[path]

    def follow(self, path: Path, name: str) -> None:
        module = self.module(path)
        if name == _ALL:
            for definition_name in module.definitions:
                self.follow(path, definition_name)
            return
        if name not in module.definitions and name in module.imports:  # what a package passes on
            self.import_(path, module.imports[name], "")
            return
        for definition_name in (_BESIDES, name):
            key = f"{module.shown}:{definition_name}"
            if key in self.code or definition_name not in module.definitions:
                continue
            self.code[key] = "\n".join(definition.meaning for definition in module.definitions[definition_name])
            for definition in module.definitions[definition_name]:
                for used, attribute in definition.uses:
                    origin = definition.imports.get(used) or module.imports.get(used)
                    if origin is not None:
                        self.import_(path, origin, attribute)
                    if used in module.definitions:
                        self.follow(path, used)

    def import_(self, path: Path, origin: _Import, attribute: str) -> None:
        """Follow `origin`, imported in the module at `path`; `attribute` '' means all of it."""
        module, is_named = _file_of(path, origin, self.root)
        if module is not None:
            self.follow(module, (attribute if is_named else origin.name or attribute) or _ALL)


@cache
def _file_of(path: Path, origin: _Import, root: Path) -> tuple[Path | None, bool]:
    """Return the file of an import in the module at `path`, and whether it is the named module.

    None for modules that are not kernel code. Cached, since files do not change while a program runs.
    """
    here = _place(path, origin, root)
    if here is None:
        return None, False
    inner = [here / f"{origin.name}.py", here / str(origin.name) / "__init__.py"]
    module = next((candidate for candidate in inner if origin.name and candidate.is_file()), None)
    if module is not None:  # a module in a package
        return module, True
    module = here / "__init__.py" if here.is_dir() else here.with_suffix(".py")
    return module if module.is_file() else None, False


def _place(path: Path, origin: _Import, root: Path) -> Path | None:
    """Return the module's path without suffix, or the package's folder.

    None if it is not kernel code.
    """
    if origin.level:
        start = path.parents[origin.level - 1]
        return start.joinpath(*origin.module.split(".")) if origin.module else start
    if origin.module != PACKAGE and not origin.module.startswith(f"{PACKAGE}."):
        return None
    return root.joinpath(*origin.module.split(".")[2:])


@cache
def _parsed(shown: str, text: str) -> _Module:
    module = _Module(shown)
    for node in parse(text).body:
        if _is_text(node):
            continue
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            module.imports |= _imports(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            if _whole(node):
                module.definitions.setdefault(_BESIDES, []).append(_definition(node))
            continue
        for name in _bound(node) or (() if _only_for_types(node) else (_BESIDES,)):
            module.definitions.setdefault(name, []).append(_definition(node))
    return module


def _definition(node: ast.stmt) -> _Definition:
    return _Definition(meaning(node), frozenset(_uses(node)), _imports(node))


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a top-level statement defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
        return list(dict.fromkeys(names))
    return []


def _only_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _uses(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Return outside names that the statement reads or imports, each with the attribute used."""
    names = _global_names(node) | _imports(node).keys()
    seen: set[int] = set()
    for inner in ast.walk(node):  # outer nodes first
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            seen.add(id(inner.value))
            if inner.value.id in names:
                yield inner.value.id, inner.attr
        elif isinstance(inner, ast.Name) and inner.id in names and id(inner) not in seen:
            yield inner.id, ""
        else:
            yield from ((name, "") for name in _whole(inner))


def _global_names(node: ast.stmt) -> set[str]:
    """Return the global names that a statement reads, as Python resolves them.

    Local variables do not count. Annotations count for fields of a class.
    """
    waiting: list[Any] = [
        compile(ast.Module([node], []), "", "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    ]
    names: set[str] = set()
    while waiting:
        code = waiting.pop()
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for instruction in dis.get_instructions(code):
            if instruction.opname.startswith("LOAD_") and (
                "GLOBAL" in instruction.opname or "NAME" in instruction.opname
            ):
                names.add(str(instruction.argval))
    for inner in ast.walk(node) if isinstance(node, ast.ClassDef) else ():
        if isinstance(inner, ast.AnnAssign):
            names |= {name.id for name in ast.walk(inner.annotation) if isinstance(name, ast.Name)}
    return names


def _imports(node: ast.AST) -> dict[str, _Import]:
    """Return the names that import statements anywhere in `node` bind."""
    imports: dict[str, _Import] = {}
    for inner in ast.walk(node):
        if isinstance(inner, ast.ImportFrom):
            for alias in inner.names:
                name = None if alias.name == _ALL else alias.name
                imports[alias.asname or alias.name] = _Import(inner.module or "", name, inner.level)
        elif isinstance(inner, ast.Import):
            imports |= {alias.asname or alias.name: _Import(alias.name) for alias in inner.names}
    return imports


def _whole(node: ast.AST) -> list[str]:
    """Return the imports that use a whole module: `import a.b` and `from a import *`."""
    names = node.names if isinstance(node, ast.Import | ast.ImportFrom) else []
    return [alias.name for alias in names if alias.name == _ALL or (isinstance(node, ast.Import) and not alias.asname)]


def meaning(value: Any) -> str:
    """Return a syntax tree as text, without docstrings and equal for every version of Python."""
    if isinstance(value, ast.AST):
        fields = [(name, inner) for name, inner in ast.iter_fields(value) if inner is not None and inner != []]
        return f"{type(value).__name__}({','.join(f'{name}={meaning(inner)}' for name, inner in fields)})"
    if isinstance(value, list):
        return f"[{','.join(meaning(inner) for inner in value if not _is_text(inner))}]"
    return repr(value)
