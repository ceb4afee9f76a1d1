"""Operators of plug-ins: which modules declare them, and what they have to say.

The pipeline finds the modules and tells of them with `stages.ir.operators.table.declare`; they are imported when an
operator, a kind or a layer is asked for that Firmline itself does not have.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stages.ir.operators.declaration import CUSTOM, MOVED, NARROW, Operator
from stages.ir.operators.layer import LayerOp
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import did_you_mean
from stages.support.system.loaded_code import make_package
from stages.support.system.syntax import parse

# What tensors of a file may be, those included that no operator of Firmline's computes.
_TYPES = frozenset((*MOVED, *NARROW, "float16", "float64", "uint16", "uint32", "uint64"))


# Domains of ONNX whose operators are Firmline's to read.
_KNOWN_DOMAINS = ("", "ai.onnx", "com.microsoft")


@dataclass(frozen=True)
class Declaring:
    """A plug-in's module: `shown` in messages, where it lies, and what gives its OPERATORS.

    `package` is the name and the folder of the package that the module is imported from where Python does not find it.
    """

    shown: str
    module: str
    place: Path
    load: Callable[[], Any] = field(compare=False)
    package: tuple[str, str] | None = None


@dataclass(frozen=True)
class Declared:
    """What the modules declare: operators by name in the schema, and who declares them; layers by their `op`.

    `onnx` has those that ONNX files have too, by `domain.OpType`.
    """

    operators: Mapping[str, Operator]
    onnx: Mapping[str, Operator]
    layers: Mapping[str, type[LayerOp]]
    by: Mapping[str, Declaring]


def by_name(shown: str, module: str, place: str, package: tuple[str, str] | None) -> Declaring:
    """The same module in another process, which is imported by its name."""

    def load() -> Any:
        if package is not None:
            make_package(package[0], Path(package[1]))
        return import_module(module).OPERATORS

    return Declaring(shown, module, Path(place), load, package)


def declared(modules: Iterable[Declaring], ours: Mapping[str, Operator], layers: Iterable[str]) -> Declared:
    """Imports the modules. Raises StageError for declarations that contradict themselves, one another or `ours`."""
    operators: dict[str, Operator] = {}
    of_onnx: dict[str, Operator] = {}
    by: dict[str, Declaring] = {}
    classes: dict[str, type[LayerOp]] = {}
    known = {operator.kind: "Firmline" for operator in ours.values()}
    taken = dict.fromkeys(layers, "Firmline")
    for module in modules:
        for operator in _operators(module):
            other = "Firmline" if operator.name in ours else by[operator.name].shown if operator.name in by else ""
            other = other or known.get(operator.kind, "")
            if other:
                raise _wrong(module, f"declares {operator.name}, '{operator.kind}' in rules, as {other} does")
            _check(module, operator)
            if operator.onnx in of_onnx:
                other = by[of_onnx[operator.onnx].name].shown
                raise _wrong(module, f"declares the ONNX operator {operator.onnx}, as {other} does")
            operators[operator.name], by[operator.name], known[operator.kind] = operator, module, module.shown
            if operator.onnx:
                of_onnx[operator.onnx] = operator
            for layer, name in _names(operator):
                if taken.get(name, module.shown) != module.shown:
                    raise _wrong(module, f"has a layer '{name}', as {taken[name]} has")
                taken[name], classes[name] = module.shown, layer
    return Declared(operators, of_onnx, classes, by)


def _operators(module: Declaring) -> tuple[Operator, ...]:
    found = module.load()
    if not isinstance(found, tuple) or not found or not all(isinstance(one, Operator) for one in found):
        raise _wrong(module, "has OPERATORS that are no tuple of stages.ir.operators.declaration.Operator")
    return found


def _names(operator: Operator) -> Iterator[tuple[type[LayerOp], str]]:
    yield from ((layer, name) for layer in operator.layers for name in sorted(layer.names()))


def _check(module: Declaring, operator: Operator) -> None:
    custom = operator.name.startswith(CUSTOM)
    if not custom and operator.name not in _schema():
        raise _wrong(
            module, f"declares {operator.name}, which is no operator of TFLite's schema; custom ones are {CUSTOM}<code>"
        )
    if custom and operator.reference is None:
        raise _wrong(module, f"declares {operator.name} without a `reference`: LiteRT cannot say what it computes")
    if custom and operator.legalize is None:
        raise _wrong(module, f"declares {operator.name} without `legalize`: TVM cannot compute it, so a layer has to")
    if bool(operator.layers) != (operator.legalize is not None):
        lacks, has = ("layers", "`legalize`") if operator.legalize is not None else ("`legalize`", "layers")
        raise _wrong(module, f"declares {operator.name} with {has} and without {lacks}")
    if isinstance(operator.types, str):
        raise _wrong(module, f"declares {operator.name} with the text '{operator.types}' as types, which are a tuple")
    for name in operator.types:
        if name not in _TYPES:
            raise _wrong(module, f"declares {operator.name} for the type {name!r}{did_you_mean(str(name), _TYPES)}")
    _check_onnx(module, operator)
    for layer in operator.layers:
        if not (isinstance(layer, type) and issubclass(layer, LayerOp) and layer.names()):
            raise _wrong(module, f"declares {operator.name} with the layer {layer!r}: no LayerOp with a literal `op`")


def _check_onnx(module: Declaring, operator: Operator) -> None:
    if not operator.onnx:
        return
    if not operator.name.startswith(CUSTOM):
        raise _wrong(module, f"declares {operator.name} with an ONNX name, which custom operators alone can have")
    domain, _, kind = operator.onnx.rpartition(".")
    if not kind or domain in _KNOWN_DOMAINS:
        what = f"declares the ONNX operator '{operator.onnx}', which has no domain of its own: domain.OpType"
        raise _wrong(module, what)


@cache
def _schema() -> frozenset[str]:
    from ai_edge_litert.schema_py_generated import BuiltinOperator

    return frozenset(name for name, code in vars(BuiltinOperator).items() if isinstance(code, int))


def _wrong(module: Declaring, what: str) -> StageError:
    return StageError(f"plug-in {module.shown}{_line(module.place)}: {escape.line(what)}")


def _line(place: Path) -> str:
    """`:12` where the module assigns OPERATORS, '' when that is not to be seen."""
    file = place / "__init__.py" if place.is_dir() else place
    try:
        tree = parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return ""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "OPERATORS" for target in targets):
            return f":{node.lineno}"
    return ""
