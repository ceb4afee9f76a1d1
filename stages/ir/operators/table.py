"""All operators: those in the modules of this folder, and those of plug-ins (stages.ir.operators.outside).

Firmline's own are imported when one is first asked for: a run of what is cached asks for none.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import stages.ir.operators
from stages.ir.operators.declaration import Operator
from stages.ir.operators.layer import LayerOp
from stages.ir.operators.outside import Declared, Declaring, declared


@dataclass(frozen=True)
class _Own:
    """Firmline's operators by name in the schema and by kind; the classes of its layers, and these by their `op`."""

    operators: Mapping[str, Operator]
    kinds: Mapping[str, Operator]
    layers: tuple[type[LayerOp], ...]
    layer_names: Mapping[str, type[LayerOp]]


@cache
def _own() -> _Own:
    found: dict[str, Operator] = {}
    classes: list[type[LayerOp]] = []
    for entry in pkgutil.iter_modules(stages.ir.operators.__path__):
        if entry.name in ("table", "outside", "page"):
            continue
        module = import_module(f"{stages.ir.operators.__name__}.{entry.name}")
        found.update((operator.name, operator) for operator in getattr(module, "OPERATORS", ()))
        classes += [
            value for value in vars(module).values() if _is_layer(value) and value.__module__ == module.__name__
        ]
    operators = dict(sorted(found.items()))
    names = {name: layer for layer in classes for name in layer.names()} | {
        str(layer.model_fields["op"].default): layer for layer in classes if not layer.names()
    }
    return _Own(operators, {operator.kind: operator for operator in operators.values()}, tuple(classes), names)


def _is_layer(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, LayerOp) and "op" in value.model_fields


class Operators(Mapping[str, Operator]):
    """By name in the schema. Plug-ins are imported when a name is asked for that Firmline does not have.

    Iterating gives Firmline's own: what is derived from them when a module is loaded holds for every project.
    """

    def __getitem__(self, name: str) -> Operator:
        own = _own().operators
        return own[name] if name in own else outside().operators[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_own().operators)

    def __len__(self) -> int:
        return len(_own().operators)


OPERATORS: Mapping[str, Operator] = Operators()

_declaring: tuple[Declaring, ...] = ()
_outside: Declared | None = None


def declare(modules: Sequence[Declaring]) -> None:
    """Says which plug-ins there are, in place of those of before. None is imported yet."""
    global _declaring, _outside
    if tuple(modules) != _declaring:
        _declaring, _outside = tuple(modules), None


def declaring() -> tuple[Declaring, ...]:
    """The plug-ins that there are."""
    return _declaring


def outside() -> Declared:
    """What plug-ins declare. Imports them; raises what that raises, and StageError for wrong declarations."""
    global _outside
    if _outside is None:
        _outside = declared(_declaring, _own().operators, _own().layer_names)
    return _outside


def onnx_operator(name: str) -> Operator | None:
    """The plug-in's operator that ONNX files call so, `domain.OpType`."""
    return outside().onnx.get(name)


def layers() -> tuple[type[LayerOp], ...]:
    """The operators of Firmline's integer graph."""
    return _own().layers


def kind_of(op: str) -> str:
    """The name in rules and reports of an operator of the schema: CONV_2D is conv2d, LEAKY_RELU is leaky_relu."""
    return OPERATORS[op].kind if op in OPERATORS else op.lower()


def operator_of(kind: str) -> Operator | None:
    """The operator that rules and recipes call so."""
    own = _own().kinds
    if kind in own:
        return own[kind]
    return next((operator for operator in outside().operators.values() if operator.kind == kind), None)


def kinds() -> list[str]:
    """All that rules and recipes can call operators, those of plug-ins among them."""
    return sorted([*_own().kinds, *(operator.kind for operator in outside().operators.values())])


def layer_of(name: str) -> type[LayerOp] | None:
    """The class of the layers with this `op`."""
    own = _own().layer_names
    return own[name] if name in own else outside().layers.get(name)
