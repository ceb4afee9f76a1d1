"""Sound ONNX files that mutants are made of: what import rewrites (functions, float16, If), floats and integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.onnx_graphs import drawn, model, node

_IMAGE = {"x": (1, 3, 6, 6)}
_WEIGHTS = {"w": drawn(1, 4, 3, 3, 3), "b": drawn(2, 4)}
_SCALES = {"s": np.float32(0.02), "t": np.float32(0.05), "z": np.array(3, np.int8)}


def convolutions() -> onnx.ModelProto:
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        node("Clip", ["c", "low", "high"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "g"], ["h"], transB=1),
        node("Softmax", ["h"], ["y"]),
    ]
    bounds = {"low": np.float32(0), "high": np.float32(6), "g": drawn(3, 5, 36)}
    return model(nodes, _IMAGE, ["y"], _WEIGHTS | bounds)


def quantized() -> onnx.ModelProto:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["v", "t"], ["w"]),
        node("Conv", ["d", "w"], ["c"]),
        node("Relu", ["c"], ["r"]),
        node("QuantizeLinear", ["r", "t", "z"], ["u"]),
        node("DequantizeLinear", ["u", "t", "z"], ["y"]),
    ]
    weights = {"v": np.arange(-54, 54).reshape(4, 3, 3, 3).astype(np.int8)}
    return model(nodes, _IMAGE, ["y"], _SCALES | weights)


def function() -> onnx.ModelProto:
    """A local function with an attribute that has a default, called twice, once by another function."""
    inner = helper.make_node("LeakyRelu", ["a"], ["z"])
    inner.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    default = [helper.make_attribute("slope", 0.5)]
    opset, own = helper.make_opsetid("", 21), helper.make_opsetid("pkg", 1)
    leaky = helper.make_function("pkg", "Leaky", ["a"], ["z"], [inner], [opset], attribute_protos=default)
    calls = [helper.make_node("Leaky", ["a"], ["s"], domain="pkg", slope=0.1), node("Neg", ["s"], ["z"])]
    outer = helper.make_function("pkg", "Outer", ["a"], ["z"], calls, [opset, own])
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Leaky", ["c"], ["l"], "pkg"), node("Outer", ["l"], ["y"], "pkg")]
    made = model(nodes, _IMAGE, ["y"], {"w": _WEIGHTS["w"]})
    made.functions.extend([leaky, outer])
    return made


def half() -> onnx.ModelProto:
    kinds = {"x": TensorProto.FLOAT16, "y": TensorProto.FLOAT}
    nodes = [node("Conv", ["x", "w", "b"], ["c"]), node("Relu", ["c"], ["r"]), node("Cast", ["r"], ["y"], to=1)]
    return model(
        nodes, _IMAGE, ["y"], {name: value.astype(np.float16) for name, value in _WEIGHTS.items()}, types=kinds
    )


def branches() -> onnx.ModelProto:
    """An If whose condition follows from a shape."""
    ends = [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)]
    graphs = [helper.make_graph([node(op, ["c"], ["o"])], op, [], ends) for op in ("Relu", "Neg")]
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Shape", ["c"], ["d"]),
        node("Gather", ["d", "one"], ["n"]),
        node("Equal", ["n", "four"], ["e"]),
        node("If", ["e"], ["i"], then_branch=graphs[0], else_branch=graphs[1]),
        node("Sigmoid", ["i"], ["y"]),
    ]
    return model(nodes, _IMAGE, ["y"], {"w": _WEIGHTS["w"], "one": np.array(1), "four": np.array(4)})


def tokens() -> onnx.ModelProto:
    nodes = [
        node("Gather", ["t", "i"], ["e"]),
        node("LayerNormalization", ["e", "g"], ["n"], axis=-1),
        node("MatMul", ["n", "m"], ["h"]),
        node("ReduceMean", ["h", "one"], ["y"], keepdims=0),
    ]
    constants = {"t": drawn(1, 20, 8), "g": drawn(2, 8), "m": drawn(3, 8, 4), "one": np.array([1])}
    return model(nodes, {"i": (1, 6)}, ["y"], constants, types={"i": TensorProto.INT64})


def moved() -> onnx.ModelProto:
    nodes = [
        node("Cast", ["x"], ["f"], to=1),
        node("Transpose", ["f"], ["t"], perm=[0, 2, 3, 1]),
        node("Slice", ["t", "from", "to", "axes"], ["s"]),
        node("Concat", ["s", "s"], ["c"], axis=1),
        node("Reshape", ["c", "shape"], ["r"]),
        node("Pad", ["r", "pads"], ["y"]),
    ]
    places = {"from": [1], "to": [3], "axes": [1], "shape": [4, -1], "pads": [0, 1, 0, 2]}
    constants: dict[str, Any] = {name: np.array(value) for name, value in places.items()}
    return model(nodes, _IMAGE, ["y"], constants, types={"x": TensorProto.UINT8})


SEEDS: tuple[Callable[[], onnx.ModelProto], ...] = (convolutions, quantized, function, half, branches, tokens, moved)


@cache
def _bytes(number: int) -> bytes:
    return SEEDS[number]().SerializeToString()


def seed_onnx(rng: Random) -> tuple[str, bytes]:
    """A file's name and its bytes."""
    number = rng.randrange(len(SEEDS))
    return SEEDS[number].__name__, _bytes(number)
