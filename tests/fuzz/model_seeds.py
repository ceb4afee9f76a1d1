"""Sound models that mutants are made of: one operator each, networks drawn at random, and the trained digits."""

from functools import cache
from random import Random
from typing import Any

from stages.ir.models import operators
from stages.ir.models.spec import options
from stages.ir.operators.table import operator_of
from tests.support.drawn_networks import network
from tests.support.emitted import ROOT
from tests.support.operator_specs import spec

# Operators with other options than `spec` gives them.
_MORE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("conv2d", {"stride": [2, 2], "padding": "valid", "activation": "relu6"}),
    ("conv2d", {"dilation": [2, 2], "per_channel": False}),
    ("conv2d", {"kernel": [1, 1]}),
    ("depthwise_conv2d", {"stride": [2, 2], "activation": "relu"}),
    ("fully_connected", {"shape": [3, 4], "per_channel": False}),
    ("add", {"other_shape": [1, 1, 16], "constant": True}),
    ("mul", {"shape": [4, 5], "other_shape": [1, 5]}),
    ("batch_matmul", {"shape": [2, 3, 4], "other_shape": [4, 5], "constant": True}),
    ("resize_bilinear", {"half_pixel_centers": True}),
)
# Of a type that the operator has: int8 at least.
_TYPES = ("int8", "int8", "uint8", "float32", "int16")
_DIGITS = ("digits_int8", "digits_float32")
_NETWORKS = 40


def seed_model(rng: Random) -> tuple[str, bytes]:
    """A model's name and file: an operator in half of the cases, a network in most others."""
    kind = rng.random()
    if kind < 0.5:
        number = rng.randrange(len(_SEEDS))
        op = _SEEDS[number][0]
        dtype = rng.choice([dtype for dtype in _TYPES if _stands_in(op, dtype)])
        return f"{op} {dtype}", _operator(number, dtype)
    if kind < 0.85:
        number = rng.randrange(_NETWORKS)
        return f"network {number}", network(number)
    name = rng.choice(_DIGITS)
    return name, (ROOT / "recipes" / "digits" / f"{name}.tflite").read_bytes()


def _stands_in(op: str, dtype: str) -> bool:
    """Whether an operator can be a model of its own in that type."""
    declared = operator_of(op)
    assert declared is not None
    return dtype in declared.tensors.types and (op not in ("quantize", "dequantize") or dtype in ("int8", "uint8"))


_SEEDS = (*((op, {}) for op in sorted(options()) if any(_stands_in(op, dtype) for dtype in _TYPES)), *_MORE)


@cache
def _operator(number: int, dtype: str) -> bytes:
    op, more = _SEEDS[number]
    return operators.build(spec(op, dtype=dtype, **more))
