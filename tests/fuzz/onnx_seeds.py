"""Sound ONNX files that mutants are made of: drawn ones, integers, and what import rewrites (functions, If)."""

from collections.abc import Callable
from functools import cache, partial
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.onnx_networks import network
from tests.support.onnx_graphs import drawn, model, node
from tests.support.onnx_integers import pair, qdq, qdq_conv

_IMAGE = {"x": (1, 3, 6, 6)}
_WEIGHTS = {"w": drawn(1, 4, 3, 3, 3), "b": drawn(2, 4)}


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
    weights = {name: value.astype(np.float16) for name, value in _WEIGHTS.items()}
    return model("c = Conv (x, w, b)  r = Relu (c)  y = Cast <to = 1> (r)", _IMAGE, ["y"], weights, types=kinds)


def branches() -> onnx.ModelProto:
    """An If whose condition follows from a shape."""
    ends = [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)]
    graphs = [helper.make_graph([node(op, ["c"], ["o"])], op, [], ends) for op in ("Relu", "Neg")]
    condition = "c = Conv (x, w)  d = Shape (c)  n = Gather (d, one)  e = Equal (n, four)"
    nodes = [condition, node("If", ["e"], ["i"], then_branch=graphs[0], else_branch=graphs[1]), "y = Sigmoid (i)"]
    return model(nodes, _IMAGE, ["y"], {"w": _WEIGHTS["w"], "one": np.array(1), "four": np.array(4)})


def tokens() -> onnx.ModelProto:
    nodes = "e = Gather (t, i)  n = LayerNormalization <axis = -1> (e, g)  h = MatMul (n, m)"
    nodes += "  y = ReduceMean <keepdims = 0> (h, one)"
    constants = {"t": drawn(1, 20, 8), "g": drawn(2, 8), "m": drawn(3, 8, 4), "one": np.array([1])}
    return model(nodes, {"i": (1, 6)}, ["y"], constants, types={"i": TensorProto.INT64})


def moved() -> onnx.ModelProto:
    nodes = "f = Cast <to = 1> (x)  t = Transpose <perm = [0, 2, 3, 1]> (f)  s = Slice (t, from, to, axes)"
    nodes += "  c = Concat <axis = 1> (s, s)  r = Reshape (c, shape)  y = Pad (r, pads)"
    places = {"from": [1], "to": [3], "axes": [1], "shape": [4, -1], "pads": [0, 1, 0, 2]}
    constants: dict[str, Any] = {name: np.array(value) for name, value in places.items()}
    return model(nodes, _IMAGE, ["y"], constants, types={"x": TensorProto.UINT8})


def quantized() -> onnx.ModelProto:
    return qdq_conv("int8", "int8", (4, 6, 3, 3), channels=True)


SEEDS: tuple[Callable[[], onnx.ModelProto], ...] = (
    *(partial(network, seed) for seed in range(4)),
    *(quantized, partial(qdq, "uint8", "Relu"), partial(pair, "Add", "uint8", True)),
    *(function, half, branches, tokens, moved),
)


@cache
def _bytes(number: int) -> bytes:
    return SEEDS[number]().SerializeToString()


def seed_onnx(rng: Random) -> tuple[str, bytes]:
    """A file's name and its bytes."""
    number = rng.randrange(len(SEEDS))
    return f"file {number}", _bytes(number)
