"""What of a model a mutation changes, and to what: choices by a generator of random numbers."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tests.fuzz import hostile

# Bytes of an element by the schema's TensorType, for types whose elements are whole bytes.
ITEM = {0: 4, 1: 2, 2: 4, 3: 1, 4: 8, 6: 1, 7: 2, 8: 8, 9: 1, 10: 8, 11: 16, 12: 8, 15: 4, 16: 2}


class Unfit(Exception):
    """The mutation found nothing to change."""


def some(values: Any, least: int = 1) -> Any:
    if values is None or len(values) < least:
        raise Unfit
    return values


def last_is_random(rng: Random, values: Any) -> list[Any]:
    """The list with a random element moved to its end, where `pop` takes it."""
    some(values)
    values.append(values.pop(rng.randrange(len(values))))
    return values


def some_graph(rng: Random, model: Any) -> Any:
    return rng.choice(some(model.subgraphs))


def some_operators(rng: Random, model: Any) -> Any:
    return some(some_graph(rng, model).operators)


def some_operator(rng: Random, model: Any) -> Any:
    return rng.choice(some_operators(rng, model))


def some_tensor(rng: Random, model: Any) -> Any:
    return rng.choice(some(some_graph(rng, model).tensors))


def some_quantization(rng: Random, model: Any) -> Any:
    tensors = some(some_graph(rng, model).tensors)
    found = [t.quantization for t in tensors if t.quantization is not None and t.quantization.scale is not None]
    return rng.choice(some(found))


@cache
def supported_codes() -> list[int]:
    from stages.operators.table import OPERATORS

    return [getattr(schema.BuiltinOperator, name) for name in OPERATORS]


def changed_indices(rng: Random, given: Any, count: int) -> list[int]:
    indices = [int(index) for index in (given if given is not None else [])]
    other = rng.choice([-1, rng.randrange(max(count, 1)), rng.randrange(max(count, 1)), count, -2, 2**31 - 1])
    kind = rng.randrange(7)
    if kind == 0 or not indices:
        indices.append(other)
    elif kind == 1:
        indices.pop(rng.randrange(len(indices)))
    elif kind in (2, 3):
        indices[rng.randrange(len(indices))] = other
    elif kind == 4:
        indices.append(rng.choice(indices))
    elif kind == 5:
        rng.shuffle(indices)
    else:
        indices = indices[: rng.choice([0, 1])]
    return indices


def other_value(rng: Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return rng.choice(hostile.FLOATS)
    if isinstance(value, int):
        return rng.choice([*hostile.INT32, *range(8), value + 1, value - 1])
    if value is None or isinstance(value, list | np.ndarray):
        return rng.choice([None, [], [0], [1, -1], [2**30, 2**30], [-5], list(range(9))])
    raise Unfit


def maybe_fit(rng: Random, model: Any, tensor: Any) -> None:
    """Half of the time, let a constant have as many bytes as its shape and type now need."""
    buffers = some(model.buffers)
    if rng.random() < 0.5 or tensor.buffer >= len(buffers) or tensor.shape is None:
        return
    buffer, size = buffers[tensor.buffer], ITEM.get(tensor.type, 0)
    for extent in tensor.shape:
        size *= int(extent)
    if buffer.data is not None and len(buffer.data) and 0 <= size < 1 << 20:
        data = [int(value) for value in buffer.data]
        buffer.data = (data * (size // len(data) + 1))[:size]
