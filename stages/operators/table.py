"""All operators: those in the modules of this folder, and those of plug-ins (stages.operators.outside)."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

import stages.operators
from stages.operators.declaration import Operator
from stages.operators.layer import LayerOp
from stages.operators.outside import Declared, Declaring, declared


def _load() -> tuple[dict[str, Operator], tuple[type[LayerOp], ...]]:
    operators: dict[str, Operator] = {}
    layers: list[type[LayerOp]] = []
    for entry in pkgutil.iter_modules(stages.operators.__path__):
        if entry.name in ("table", "outside", "page"):
            continue
        module = import_module(f"{stages.operators.__name__}.{entry.name}")
        operators.update((operator.name, operator) for operator in getattr(module, "OPERATORS", ()))
        layers += [value for value in vars(module).values() if _is_layer(value) and value.__module__ == module.__name__]
    return dict(sorted(operators.items())), tuple(layers)


def _is_layer(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, LayerOp) and "op" in value.model_fields


class Operators(Mapping[str, Operator]):
    """By name in the schema. Plug-ins are imported when a name is asked for that Firmline does not have.

    Iterating gives Firmline's own: what is derived from them when a module is loaded holds for every project.
    """

    def __init__(self, own: Mapping[str, Operator]) -> None:
        self._own = own

    def __getitem__(self, name: str) -> Operator:
        return self._own[name] if name in self._own else outside().operators[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


_own, LAYERS = _load()
OPERATORS: Mapping[str, Operator] = Operators(_own)
_LAYERS = {name: layer for layer in LAYERS for name in layer.names()} | {
    str(layer.model_fields["op"].default): layer for layer in LAYERS if not layer.names()
}
_KINDS = {operator.kind: operator for operator in _own.values()}

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
        _outside = declared(_declaring, _own, _LAYERS)
    return _outside


def kind_of(op: str) -> str:
    """The name in rules and reports of an operator of the schema: CONV_2D is conv2d, LEAKY_RELU is leaky_relu."""
    return OPERATORS[op].kind if op in OPERATORS else op.lower()


def operator_of(kind: str) -> Operator | None:
    """The operator that rules and recipes call so."""
    if kind in _KINDS:
        return _KINDS[kind]
    return next((operator for operator in outside().operators.values() if operator.kind == kind), None)


def kinds() -> list[str]:
    """All that rules and recipes can call operators, those of plug-ins among them."""
    return sorted([*_KINDS, *(operator.kind for operator in outside().operators.values())])


def layer_of(name: str) -> type[LayerOp] | None:
    """The class of the layers with this `op`."""
    return _LAYERS[name] if name in _LAYERS else outside().layers.get(name)
