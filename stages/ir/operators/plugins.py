"""Operators of plug-ins: the modules that declare them, and checks of the declarations.

The pipeline finds the modules and passes them to `stages.ir.operators.table.declare`. They are imported when an
operator, a kind or a layer is requested that Firmline lacks.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stages.ir.layers import LayerOp
from stages.ir.operators.declaration import CUSTOM, MOVED, NARROW, Operator
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import did_you_mean
from stages.support.system.loaded_code import make_package
from stages.support.system.syntax import parse

# Types of tensors in files, also those that Firmline does not compute.
_TYPES = frozenset((*MOVED, *NARROW, "float16", "float64", "uint16", "uint32", "uint64"))


# ONNX domains that Firmline itself reads.
_KNOWN_DOMAINS = ("", "ai.onnx", "com.microsoft")


@dataclass(frozen=True)
class PluginModule:
    """A plug-in's module that declares operators.

    shown    its name in messages
    module   its import name
    place    its file or folder
    load     returns its OPERATORS
    package  name and folder of the package to import it from, if Python does not find it
    """

    shown: str
    module: str
    place: Path
    load: Callable[[], Any] = field(compare=False)
    package: tuple[str, str] | None = None


@dataclass(frozen=True)
class PluginOperators:
    """Declarations of all plug-ins.

    operators  by name in the schema
    onnx       those with an ONNX form, by `domain.OpType`
    layers     by their `op`
    by         the declaring module of each operator
    """

    operators: Mapping[str, Operator]
    onnx: Mapping[str, Operator]
    layers: Mapping[str, type[LayerOp]]
    by: Mapping[str, PluginModule]


def module_by_name(shown: str, module: str, place: str, package: tuple[str, str] | None) -> PluginModule:
    """Describe a plug-in's module in another process, which imports it by its name."""

    def load() -> Any:
        """Import the module and return its OPERATORS."""
        if package is not None:
            make_package(package[0], Path(package[1]))
        return import_module(module).OPERATORS

    return PluginModule(shown, module, Path(place), load, package)


def load_plugins(
    modules: Iterable[PluginModule], built_in: Mapping[str, Operator], layers: Iterable[str]
) -> PluginOperators:
    """Import the modules. Raises StageError for invalid declarations, and for names in use."""
    operators: dict[str, Operator] = {}
    of_onnx: dict[str, Operator] = {}
    by: dict[str, PluginModule] = {}
    classes: dict[str, type[LayerOp]] = {}
    kind_owners = {operator.kind: "Firmline" for operator in built_in.values()}
    layer_owners = dict.fromkeys(layers, "Firmline")
    for module in modules:
        for operator in _operators(module):
            owner = "Firmline" if operator.name in built_in else by[operator.name].shown if operator.name in by else ""
            owner = owner or kind_owners.get(operator.kind, "")
            if owner:
                raise _wrong(
                    module, f"declares {operator.name} ('{operator.kind}' in rules), which {owner} declares too"
                )
            _check(module, operator)
            if operator.legalization.onnx in of_onnx:
                owner = by[of_onnx[operator.legalization.onnx].name].shown
                raise _wrong(
                    module, f"declares the ONNX operator {operator.legalization.onnx}, which {owner} declares too"
                )
            operators[operator.name], by[operator.name], kind_owners[operator.kind] = operator, module, module.shown
            if operator.legalization.onnx:
                of_onnx[operator.legalization.onnx] = operator
            for layer, name in _names(operator):
                if layer_owners.get(name, module.shown) != module.shown:
                    raise _wrong(module, f"has a layer '{name}', which {layer_owners[name]} has too")
                layer_owners[name], classes[name] = module.shown, layer
    return PluginOperators(operators, of_onnx, classes, by)


def _operators(module: PluginModule) -> tuple[Operator, ...]:
    operators = module.load()
    if (
        not isinstance(operators, tuple)
        or not operators
        or not all(isinstance(operator, Operator) for operator in operators)
    ):
        raise _wrong(module, "has OPERATORS that are not a tuple of stages.ir.operators.declaration.Operator")
    return operators


def _names(operator: Operator) -> Iterator[tuple[type[LayerOp], str]]:
    yield from ((layer, name) for layer in operator.legalization.layers for name in sorted(layer.names()))


def _check(module: PluginModule, operator: Operator) -> None:
    custom = operator.name.startswith(CUSTOM)
    if not custom and operator.name not in _schema():
        raise _wrong(
            module, f"declares {operator.name}, which is not in TFLite's schema; custom operators are {CUSTOM}<code>"
        )
    if custom and operator.litert.reference is None:
        raise _wrong(
            module,
            f"declares {operator.name} without a `reference`, which custom operators need: LiteRT does not know them",
        )
    if custom and operator.legalization.legalize is None:
        raise _wrong(
            module, f"declares {operator.name} without `legalize`, which custom operators need: TVM cannot compute them"
        )
    if bool(operator.legalization.layers) != (operator.legalization.legalize is not None):
        lacks, has = (
            ("layers", "`legalize`") if operator.legalization.legalize is not None else ("`legalize`", "layers")
        )
        raise _wrong(module, f"declares {operator.name} with {has} and without {lacks}")
    if isinstance(operator.tensors.types, str):
        raise _wrong(
            module, f"declares {operator.name} with the text '{operator.tensors.types}' as types; types must be a tuple"
        )
    for name in operator.tensors.types:
        if name not in _TYPES:
            raise _wrong(module, f"declares {operator.name} for the type {name!r}{did_you_mean(str(name), _TYPES)}")
    _check_onnx(module, operator)
    for layer in operator.legalization.layers:
        if not (isinstance(layer, type) and issubclass(layer, LayerOp) and layer.names()):
            raise _wrong(
                module, f"declares {operator.name} with the layer {layer!r}, which is not a LayerOp with a literal `op`"
            )


def _check_onnx(module: PluginModule, operator: Operator) -> None:
    if not operator.legalization.onnx:
        return
    if not operator.name.startswith(CUSTOM):
        raise _wrong(module, f"declares {operator.name} with an ONNX name; only custom operators may have one")
    domain, _, kind = operator.legalization.onnx.rpartition(".")
    if not kind or domain in _KNOWN_DOMAINS:
        what = f"declares the ONNX operator '{operator.legalization.onnx}', which needs a custom domain: domain.OpType"
        raise _wrong(module, what)


@cache
def _schema() -> frozenset[str]:
    from ai_edge_litert.schema_py_generated import BuiltinOperator

    return frozenset(name for name, code in vars(BuiltinOperator).items() if isinstance(code, int))


def _wrong(module: PluginModule, what: str) -> StageError:
    return StageError(f"plug-in {module.shown}{_line(module.place)}: {escape.line(what)}")


def _line(place: Path) -> str:
    """Return `:12` if the module assigns OPERATORS on line 12, '' if that is unknown."""
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
