"""All operators: of the modules in this folder and of plug-ins (`plugins`).

The folder's modules are imported on first use: a run with a full cache needs none.
"""

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import stages.ir.operators
from stages.ir.layers import LayerOp
from stages.ir.model_info import ModelInfo
from stages.ir.operators.declaration import Operator
from stages.ir.operators.plugins import PluginModule, PluginOperators, load_plugins


@dataclass(frozen=True)
class _BuiltIn:
    """Firmline's operators, by name in the schema and by kind, and its layer classes."""

    operators: Mapping[str, Operator]
    kinds: Mapping[str, Operator]
    layers: tuple[type[LayerOp], ...]
    layer_names: Mapping[str, type[LayerOp]]


@cache
def _built_in() -> _BuiltIn:
    operators_by_name: dict[str, Operator] = {}
    classes: list[type[LayerOp]] = []
    for entry in pkgutil.iter_modules(stages.ir.operators.__path__):
        if entry.name in ("table", "plugins", "page"):
            continue
        module = import_module(f"{stages.ir.operators.__name__}.{entry.name}")
        operators_by_name.update((operator.name, operator) for operator in getattr(module, "OPERATORS", ()))
        classes += [
            value for value in vars(module).values() if _is_layer(value) and value.__module__ == module.__name__
        ]
    operators = dict(sorted(operators_by_name.items()))
    names = {name: layer for layer in classes for name in layer.names()} | {
        str(layer.model_fields["op"].default): layer for layer in classes if not layer.names()
    }
    return _BuiltIn(operators, {operator.kind: operator for operator in operators.values()}, tuple(classes), names)


def _is_layer(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, LayerOp) and "op" in value.model_fields


class Operators(Mapping[str, Operator]):
    """Operators by name in the schema; unknown names load the plug-ins.

    Iteration covers Firmline's own operators: values derived from them at import time hold for every project.
    """

    def __getitem__(self, name: str) -> Operator:
        built_in = _built_in().operators
        return built_in[name] if name in built_in else plugin_operators().operators[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_built_in().operators)

    def __len__(self) -> int:
        return len(_built_in().operators)


OPERATORS: Mapping[str, Operator] = Operators()

_plugin_modules: tuple[PluginModule, ...] = ()
_plugin_operators: PluginOperators | None = None


def declare(modules: Sequence[PluginModule]) -> None:
    """Replace the list of plug-ins. None is imported yet."""
    global _plugin_modules, _plugin_operators
    if tuple(modules) != _plugin_modules:
        _plugin_modules, _plugin_operators = tuple(modules), None


def plugin_modules() -> tuple[PluginModule, ...]:
    """The plug-ins."""
    return _plugin_modules


def plugin_operators() -> PluginOperators:
    """Import the plug-ins and return their operator declarations.

    Raises StageError for invalid ones.
    """
    global _plugin_operators
    if _plugin_operators is None:
        _plugin_operators = load_plugins(_plugin_modules, _built_in().operators, _built_in().layer_names)
    return _plugin_operators


def onnx_operator(name: str) -> Operator | None:
    """Plug-in's operator with this name in ONNX files, `domain.OpType`; None if there is none."""
    return plugin_operators().onnx.get(name)


def layers() -> tuple[type[LayerOp], ...]:
    """Layer classes of Firmline's integer graph."""
    return _built_in().layers


def kind_of(op: str) -> str:
    """Name of an operator in rules and reports: conv2d for CONV_2D."""
    return OPERATORS[op].kind if op in OPERATORS else op.lower()


def operator_of(kind: str) -> Operator | None:
    """Operator with this kind, None if there is none."""
    built_in = _built_in().kinds
    if kind in built_in:
        return built_in[kind]
    return next((operator for operator in plugin_operators().operators.values() if operator.kind == kind), None)


def kinds() -> list[str]:
    """All kinds that rules and recipes may name, including plug-ins'."""
    return sorted([*_built_in().kinds, *(operator.kind for operator in plugin_operators().operators.values())])


def layer_of(name: str) -> type[LayerOp] | None:
    """Class of the layers with this `op`, None if there is none."""
    built_in = _built_in().layer_names
    return built_in[name] if name in built_in else plugin_operators().layers.get(name)


def has_state(info: ModelInfo) -> bool:
    """Return whether an operator of the graph keeps values between inferences."""
    return any(operator.op in OPERATORS and OPERATORS[operator.op].tensors.state for operator in info.operators)
