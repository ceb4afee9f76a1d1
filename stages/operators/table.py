"""All operators, found in the modules of this folder."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import stages.operators
from stages.operators.declaration import Operator
from stages.operators.layer import LayerOp


def _load() -> tuple[dict[str, Operator], tuple[type[LayerOp], ...]]:
    operators: dict[str, Operator] = {}
    layers: list[type[LayerOp]] = []
    for entry in pkgutil.iter_modules(stages.operators.__path__):
        if entry.name in ("table", "page"):
            continue
        module = import_module(f"{stages.operators.__name__}.{entry.name}")
        operators.update((operator.name, operator) for operator in getattr(module, "OPERATORS", ()))
        layers += [value for value in vars(module).values() if _is_layer(value) and value.__module__ == module.__name__]
    return dict(sorted(operators.items())), tuple(layers)


def _is_layer(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, LayerOp) and "op" in value.model_fields


OPERATORS, LAYERS = _load()


def kind_of(op: str) -> str:
    """The name in rules and reports of an operator of the schema: CONV_2D is conv2d, LEAKY_RELU is leaky_relu."""
    return OPERATORS[op].kind if op in OPERATORS else op.lower()
