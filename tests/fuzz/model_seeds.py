"""Sound models that mutants are made of: one operator each, networks drawn at random, and the trained digits."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from stages.models import operators
from stages.models.spec import OpModel
from tests.support.drawn_networks import network
from tests.support.emitted import ROOT

_WINDOW = {"shape": [6, 7, 4], "kernel": [3, 3]}
_OPERATORS: tuple[dict[str, Any], ...] = (
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
)
_DIGITS = ("digits_int8", "digits_float32")
_NETWORKS = 40


def seed_model(rng: Random) -> tuple[str, bytes]:
    """A model's name and file: an operator in half of the cases, a network in most others."""
    kind = rng.random()
    if kind < 0.5:
        number = rng.randrange(len(_OPERATORS))
        dtype = rng.choice(["int8", "int8", "uint8", "float32"])
        if _OPERATORS[number]["op"] in ("quantize", "dequantize") and dtype == "float32":
            dtype = "int8"
        return f"{_OPERATORS[number]['op']} {dtype}", _operator(number, dtype)
    if kind < 0.85:
        number = rng.randrange(_NETWORKS)
        return f"network {number}", _network(number)
    name = rng.choice(_DIGITS)
    return name, _digits(name)


@cache
def _operator(number: int, dtype: str) -> bytes:
    return operators.build(OpModel.model_validate({**_OPERATORS[number], "dtype": dtype}))


@cache
def _network(number: int) -> bytes:
    return network(number)


@cache
def _digits(name: str) -> bytes:
    return (ROOT / "recipes" / "digits" / f"{name}.tflite").read_bytes()
