"""Sound models that mutants are made of: one operator each, networks drawn at random, and the trained digits."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from stages.models import operators
from stages.models.spec import OpModel
from stages.operators.table import operator_of
from tests.support.drawn_networks import network
from tests.support.emitted import ROOT

_WINDOW = {"shape": [6, 7, 4], "kernel": [3, 3]}
OPERATORS: tuple[dict[str, Any], ...] = (
    {"op": "conv2d", **_WINDOW, "out_channels": 5},
    {"op": "conv2d", **_WINDOW, "out_channels": 4, "stride": [2, 2], "padding": "valid", "activation": "relu6"},
    {"op": "conv2d", **_WINDOW, "out_channels": 4, "dilation": [2, 2], "per_channel": False},
    {"op": "conv2d", "shape": [5, 5, 8], "out_channels": 16},
    {"op": "depthwise_conv2d", **_WINDOW},
    {"op": "depthwise_conv2d", **_WINDOW, "depth_multiplier": 2, "stride": [2, 2], "activation": "relu"},
    {"op": "fully_connected", "shape": [20], "out_channels": 6},
    {"op": "fully_connected", "shape": [3, 4], "out_channels": 6, "per_channel": False},
    {"op": "add", "shape": [4, 5, 3]},
    {"op": "add", "shape": [4, 5, 3], "other_shape": [1, 1, 3], "constant": True},
    {"op": "sub", "shape": [4, 5]},
    {"op": "mul", "shape": [4, 5], "other_shape": [1, 5]},
    {"op": "avg_pool2d", **_WINDOW, "stride": [2, 2]},
    {"op": "max_pool2d", **_WINDOW, "padding": "valid"},
    {"op": "mean", "shape": [4, 5, 3], "axes": [1, 2]},
    {"op": "softmax", "shape": [11]},
    {"op": "logistic", "shape": [7]},
    {"op": "tanh", "shape": [7]},
    {"op": "hard_swish", "shape": [7]},
    {"op": "relu", "shape": [3, 7]},
    {"op": "relu6", "shape": [3, 7]},
    {"op": "leaky_relu", "shape": [3, 7]},
    {"op": "pad", "shape": [4, 3], "pads": [[0, 0], [1, 2], [0, 3]]},
    {"op": "concatenation", "shape": [4, 3], "parts": 3},
    {"op": "reshape", "shape": [4, 6], "new_shape": [1, 3, 8]},
    {"op": "squeeze", "shape": [1, 6], "axes": [1]},
    {"op": "transpose", "shape": [4, 6], "permutation": [0, 2, 1]},
    {"op": "slice", "shape": [4, 6], "begin": [0, 1, 2], "size": [1, 2, 3]},
    {"op": "strided_slice", "shape": [4, 6], "begin": [0, 1, 2], "end": [1, 4, 6], "strides": [1, 2, 2]},
    {"op": "split", "shape": [4, 6], "axis": 2, "parts": 3},
    {"op": "quantize", "shape": [9], "to": "uint8"},
    {"op": "dequantize", "shape": [9]},
    {"op": "resize_nearest_neighbor", "shape": [4, 5, 3], "size": [7, 9]},
    {"op": "resize_bilinear", "shape": [4, 5, 3], "size": [8, 10], "half_pixel_centers": True},
    {"op": "transpose_conv", **_WINDOW, "out_channels": 5, "stride": [2, 2]},
    {"op": "batch_matmul", "shape": [3, 4], "other_shape": [1, 4, 5]},
    {"op": "batch_matmul", "shape": [2, 3, 4], "other_shape": [4, 5], "constant": True},
    {"op": "gather", "shape": [4, 6], "indices": [3, 0, 3], "axis": 1},
    {"op": "pack", "shape": [4, 3], "parts": 3, "axis": 1},
    {"op": "unpack", "shape": [4, 3], "axis": 1},
    {"op": "mirror_pad", "shape": [4, 3], "pads": [[0, 0], [1, 2], [0, 1]]},
    {"op": "broadcast_to", "shape": [1, 3], "new_shape": [1, 4, 3]},
    {"op": "tile", "shape": [2, 3], "multiples": [1, 2, 3]},
    {"op": "reverse_v2", "shape": [4, 3], "axes": [1]},
    {"op": "space_to_batch_nd", "shape": [4, 6, 2], "pads": [[0, 0], [1, 1]]},
    {"op": "batch_to_space_nd", "shape": [3, 4, 2], "batch": 4, "pads": [[0, 1], [0, 0]]},
    {"op": "arg_max", "shape": [4, 6], "axis": 1},
    {"op": "arg_min", "shape": [4, 6]},
    {"op": "cast", "shape": [7]},
    {"op": "abs", "shape": [7]},
    {"op": "elu", "shape": [7]},
    {"op": "exp", "shape": [7]},
    {"op": "gelu", "shape": [7]},
    {"op": "log_softmax", "shape": [3, 7]},
    {"op": "prelu", "shape": [4, 3], "other_shape": [1, 3]},
    {"op": "squared_difference", "shape": [4, 3]},
    {"op": "maximum", "shape": [4, 3]},
    {"op": "minimum", "shape": [4, 3], "other_shape": [1, 3], "constant": True},
    *(
        {"op": name, "shape": [4, 3]}
        for name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
    ),
    *({"op": name, "shape": [4, 3], "axes": [1]} for name in ("sum", "reduce_max", "reduce_min", "reduce_prod")),
    {"op": "svdf", "shape": [6], "out_channels": 4, "rank": 2, "memory": 3},
    {"op": "lstm", "shape": [5, 6], "out_channels": 4},
)
# Of a type that the operator has: int8 at least.
_TYPES = ("int8", "int8", "uint8", "float32", "int16")
_DIGITS = ("digits_int8", "digits_float32")
_NETWORKS = 40


def seed_model(rng: Random) -> tuple[str, bytes]:
    """A model's name and file: an operator in half of the cases, a network in most others."""
    kind = rng.random()
    if kind < 0.5:
        number = rng.randrange(len(OPERATORS))
        op = OPERATORS[number]["op"]
        dtype = rng.choice([dtype for dtype in _TYPES if _stands_in(op, dtype)])
        return f"{OPERATORS[number]['op']} {dtype}", _operator(number, dtype)
    if kind < 0.85:
        number = rng.randrange(_NETWORKS)
        return f"network {number}", _network(number)
    name = rng.choice(_DIGITS)
    return name, _digits(name)


def _stands_in(op: str, dtype: str) -> bool:
    """Whether an operator can be a model of its own in that type."""
    declared = operator_of(op)
    assert declared is not None
    return dtype in declared.types and (op not in ("quantize", "dequantize") or dtype in ("int8", "uint8"))


@cache
def _operator(number: int, dtype: str) -> bytes:
    return operators.build(OpModel.model_validate({**OPERATORS[number], "dtype": dtype}))


@cache
def _network(number: int) -> bytes:
    return network(number)


@cache
def _digits(name: str) -> bytes:
    return (ROOT / "recipes" / "digits" / f"{name}.tflite").read_bytes()
