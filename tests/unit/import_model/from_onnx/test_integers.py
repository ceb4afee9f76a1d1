"""ONNX networks of integers, as DequantizeLinear and QuantizeLinear say them and as QLinear operators do.

Every number of the integer graph is held to ONNX Runtime's, layer by layer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from stages.base import StageError
from stages.graph import Graph
from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.import_model.onnx import convert
from stages.import_model.onnx.operators.weights import Weights
from stages.layout.apply import lay_out
from stages.models.tflite_reader import read
from stages.quantize.lower import lower_module
from stages.reference.onnx_runtime import OnnxReference
from stages.verify.onnx_layers import OnnxLayers
from tests.support.integer import LAYOUTS
from tests.support.onnx_graphs import drawn, model, node

SCALE = 0.02
SHAPE = (1, 6, 9, 7)
Constants = dict[str, Any]
KINDS = {"int8": np.int8, "uint8": np.uint8}
TYPES = {"int8": 3, "uint8": 2}


def graph_of(proto: Any, layout: str = "NHWC", *, twice: bool = False) -> tuple[Graph, OnnxReference, dict[str, Any]]:
    """The integer graph, ONNX Runtime, and what import says of the network."""
    data = proto.SerializeToString()
    made = convert(data, "net.onnx", {}, "nchw")
    info = read(made.data, "net.onnx")
    description = describe(info, operator_options(made.data), made.rules)
    module, _ = lay_out(build_module(made.data, info), LAYOUTS[layout])
    return lower_module(module, description, twice=twice).graph, OnnxReference(made.data, data, made.names), description


def held(proto: Any, folder: Path, layout: str = "NHWC", runs: int = 3, *, twice: bool = False) -> OnnxLayers:
    """After some runs on random numbers in which every layer was ONNX Runtime's. StageError where one was not."""
    graph, theirs, description = graph_of(proto, layout, twice=twice)
    folder.mkdir(exist_ok=True)
    graph.save(folder)
    (folder / "tensors.json").write_text(json.dumps(description))
    layers = OnnxLayers(folder, folder / "tensors.json", theirs)
    for seed in range(runs):
        random = np.random.default_rng(seed)
        inputs = [
            random.integers(-128, 128, t.shape).astype(t.dtype)
            if t.dtype != "float32"
            else random.uniform(-3, 3, t.shape).astype(np.float32)
            for t in theirs.inputs
        ]
        layers.run(inputs)
    return layers


class Net:
    """Nodes and constants of a network between integers, of one kind, as they are appended."""

    def __init__(self, kind: str) -> None:
        self.kind, self.nodes, self.constants = kind, [], Constants()

    def number(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        self.constants[name] = np.asarray(value, dtype)
        return name

    def quant(self, name: str, scale: float, zero: int) -> list[str]:
        zero = zero + 128 if self.kind == "uint8" else zero
        return [self.number(f"{name}_s", scale), self.number(f"{name}_z", zero, KINDS[self.kind])]

    def quantize(self, x: str, name: str, scale: float = SCALE, zero: int = -7) -> str:
        self.nodes.append(node("QuantizeLinear", [x, *self.quant(name, scale, zero)], [name]))
        return name

    def dequantize(self, x: str) -> str:
        made = f"{x}_real{len(self.nodes)}"
        self.nodes.append(node("DequantizeLinear", [x, f"{x}_s", f"{x}_z"], [made]))
        return made

    def weights(self, name: str, shape: tuple[int, ...], kind: str, axis: int, *, channels: bool, zero: int = 0) -> Any:
        """Names of drawn integers, their scales and zero points."""
        random = np.random.default_rng(len(self.constants))
        low, high = (-127, 128) if kind == "int8" else (0, 256)
        count = shape[axis] if channels else 1
        scales = random.uniform(0.003, 0.01, count if channels else ())
        self.number(name, random.integers(low, high, shape), KINDS[kind])
        self.number(f"{name}_s", scales)
        self.number(f"{name}_z", np.full(count, zero) if channels else zero, KINDS[kind])
        return [name, f"{name}_s", f"{name}_z"]

    def real_weights(self, name: str, shape: tuple[int, ...], kind: str, axis: int, **more: Any) -> str:
        self.nodes.append(
            node("DequantizeLinear", self.weights(name, shape, kind, axis, **more), [f"{name}_real"], axis=axis)
        )
        return f"{name}_real"

    def real_bias(self, name: str, count: int, weights: str, x: str = "q") -> str:
        scales = self.constants[f"{x}_s"] * np.broadcast_to(self.constants[f"{weights}_s"], count)
        self.number(name, np.random.default_rng(5).integers(-2000, 2000, count), np.int32)
        self.number(f"{name}_s", scales)
        self.number(f"{name}_z", np.zeros(count), np.int32)
        self.nodes.append(node("DequantizeLinear", [name, f"{name}_s", f"{name}_z"], [f"{name}_real"], axis=0))
        return f"{name}_real"

    def op(self, op: str, inputs: list[str], name: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(node(op, inputs, [name], domain, **attributes))
        return name

    def model(self, shape: tuple[int, ...] = SHAPE, outputs: Any = ("y",), opset: int = 21) -> Any:
        kinds = dict.fromkeys(outputs, TYPES[self.kind])
        return model(self.nodes, {"x": shape}, list(outputs), self.constants, types=kinds, opset=opset)


def qdq(
    kind: str,
    op: str,
    shape: tuple[int, ...] = SHAPE,
    scale: float = 0.05,
    after: str = "",
    *,
    bounds: Mapping[str, Any] | None = None,
    opset: int = 21,
    **attributes: Any,
) -> Any:
    """quantize, dequantize, one operator on `x` alone, perhaps one `after` it with `bounds`, quantize."""
    net = Net(kind)
    x = net.dequantize(net.quantize("x", "q"))
    y = net.op(op, [x], "v", **attributes)
    if after:
        y = net.op(after, [y], "activated", **(bounds or {}))
    net.quantize(y, "y", scale, 3)
    return net.model(shape, opset=opset)


def qdq_conv(
    kind: str, weights: str, shape: tuple[int, ...], *, channels: bool, zero: int = 0, bias: str = "int", **more: Any
) -> Any:
    net = Net(kind)
    x = net.dequantize(net.quantize("x", "q"))
    w = net.real_weights("w", shape, weights, 0, channels=channels, zero=zero)
    inputs = [x, w]
    if bias == "int":
        inputs.append(net.real_bias("b", shape[0], "w"))
    elif bias == "real":
        inputs.append(net.number("b", drawn(3, shape[0])))
    net.op("Conv", inputs, "v", **more)
    net.op("Relu", ["v"], "r")
    net.quantize("r", "y", 0.03, -128)
    return net.model()


def qlinear_conv(kind: str, weights: str, shape: tuple[int, ...], *, channels: bool, zero: int = 0, **more: Any) -> Any:
    net = Net(kind)
    q = net.quantize("x", "q")
    w = net.weights("w", shape, weights, 0, channels=channels, zero=zero)
    net.number("b", np.random.default_rng(5).integers(-2000, 2000, shape[0]), np.int32)
    net.op("QLinearConv", [q, "q_s", "q_z", *w, *net.quant("y", 0.04, 5), "b"], "y", **more)
    return net.model()


def moved_channels(low: int, high: int) -> Any:
    """A convolution by weights from `low` to `high` whose zero points are one for each channel."""
    net = Net("int8")
    x = net.dequantize(net.quantize("x", "q"))
    w = net.real_weights("w", (8, 6, 3, 3), "int8", 0, channels=True)
    net.constants["w"] = np.random.default_rng(1).integers(low, high, (8, 6, 3, 3)).astype(np.int8)
    net.constants["w_z"] = np.arange(-4, 4, dtype=np.int8)
    net.quantize(net.op("Conv", [x, w], "v"), "y", 0.05, 3)
    return net.model()


def pair(op: str, kind: str, qlinear: bool, scales: tuple[float, float, float] | None = None) -> Any:
    net = Net(kind)
    first, second, out = scales or (0.017, 0.023, 0.05 if op == "Mul" else 0.041)
    a, b = net.quantize("x", "a", first, 11), net.quantize("x", "b", second, -40)
    if qlinear:
        names = ["a", "a_s", "a_z", "b", "b_s", "b_z", *net.quant("y", out, -3)]
        net.op(f"QLinear{op}", names, "y", "com.microsoft")
    else:
        net.op(op, [net.dequantize(a), net.dequantize(b)], "v")
        net.quantize("v", "y", out, -3)
    return net.model()


def doubled(op: str, qlinear: bool) -> Any:
    """A tensor and itself, on twice its scale, so that every second sum is a half."""
    net = Net("uint8")
    a = net.quantize("x", "a", 0.017, 11)
    out = 0.034 if op == "Add" else 0.02
    if qlinear:
        net.op(f"QLinear{op}", ["a", "a_s", "a_z", "a", "a_s", "a_z", *net.quant("y", out, -3)], "y", "com.microsoft")
    else:
        real = net.dequantize(a)
        net.op("Relu", [net.op(op, [real, real], "v")], "r")
        net.quantize("r", "y", out, -3)
    return net.model()


def matrix(kind: str, op: str) -> Any:
    """A product of flattened images, by Gemm, QGemm or QLinearMatMul."""
    net = Net(kind)
    q = net.quantize("x", "q")
    depth, units = int(np.prod(SHAPE[1:])), 10
    if op == "Gemm":
        x = net.op("Flatten", [net.dequantize(q)], "flat")
        w = net.real_weights("w", (units, depth), "int8", 0, channels=True)
        net.op("Gemm", [x, w, net.real_bias("b", units, "w")], "v", transB=1)
        net.quantize("v", "y", 0.3, 0)
        return net.model()
    x = net.op("Flatten", [q], "flat")
    w = net.weights("w", (depth, units), "int8", 1, channels=op == "QGemm")
    inputs = [x, "q_s", "q_z", *w]
    if op == "QGemm":
        inputs.append(net.number("b", np.arange(units) * 100, np.int32))
    net.op(op, [*inputs, *net.quant("y", 0.3, 0)], "y", "com.microsoft" if op == "QGemm" else "")
    return net.model()


def far_zero_points(op: str) -> Any:
    """Rows by uint8 weights whose zero points are one for each output, from end to end of the type."""
    net = Net("uint8")
    q = net.quantize("x", "q")
    shape, axis = ((10, 378), 0) if op == "Gemm" else ((378, 10), 1)
    w = net.weights("w", shape, "uint8", axis, channels=True)
    net.constants["w_z"] = np.array([0, 255, 128, 3, 250, 127, 64, 200, 1, 90], np.uint8)
    net.constants["w"].reshape(-1)[:2] = 0, 255
    if op == "Gemm":
        net.nodes.append(node("DequantizeLinear", w, ["w_real"], axis=0))
        x = net.op("Flatten", [net.dequantize(q)], "flat")
        net.quantize(net.op("Gemm", [x, "w_real"], "v", transB=1), "y", 2.0, 0)
        return net.model()
    x = net.op("Flatten", [q], "flat")
    net.op("QLinearMatMul", [x, "q_s", "q_z", *w, *net.quant("y", 2.0, 0)], "y")
    return net.model()


@pytest.mark.parametrize(("least", "most", "count"), [(-128, 127, 1), (-255, 127, 2), (-255, 254, 2), (-255, 255, 3)])
def test_into_how_many_products_a_matrix_goes(least: int, most: int, count: int) -> None:
    """docs/onnx.md says so: each takes as many products as the first, and rows that are copied."""
    wide = np.arange(least, most + 1).astype(np.int16)
    parts = Weights(wide.astype(np.int8) if count == 1 else wide).parts
    assert [part.dtype for part in parts] == [np.int8] * count
    np.testing.assert_array_equal(np.sum(parts, axis=0, dtype=np.int64), wide)


def gemm_and_one_number(channels: bool) -> Any:
    net = Net("int8")
    x = net.op("Flatten", [net.dequantize(net.quantize("x", "q"))], "flat")
    w = net.real_weights("w", (10, 378), "int8", 0, channels=channels)
    net.op("Gemm", [x, w, net.number("b", [0.7])], "v", transB=1)
    net.quantize("v", "y", 0.3, 0)
    return net.model()


def joined(kind: str, qlinear: bool) -> Any:
    net = Net(kind)
    a, b = net.quantize("x", "a", 0.017, 11), net.quantize("x", "b", 0.031, -40)
    if qlinear:
        net.op(
            "QLinearConcat",
            [*net.quant("y", 0.031, -40), "a", "a_s", "a_z", "b", "b_s", "b_z"],
            "y",
            "com.microsoft",
            axis=1,
        )
    else:
        net.op("Concat", [net.dequantize(a), net.dequantize(b)], "v", axis=1)
        net.quantize("v", "y", 0.031, -40)
    return net.model()


def raw(kind: str, op: str, value: Any = None, constants: Any = (), **attributes: Any) -> Any:
    """quantize, one operator on the integers themselves, dequantize. `value` and `constants`: its other inputs."""
    net = Net(kind)
    inputs = [net.quantize("x", "q"), *(net.number(f"c{at}", one, np.int64) for at, one in enumerate(constants))]
    if value is not None:
        inputs.append(net.number("value", value, KINDS[kind]))
    net.op(op, inputs, "y", **attributes)
    net.nodes.append(node("DequantizeLinear", ["y", "q_s", "q_z"], ["real"]))
    return model(net.nodes, {"x": SHAPE}, ["real"], net.constants)


def raw_clip(kind: str) -> Any:
    net = Net(kind)
    bounds = [net.number(name, value, KINDS[kind]) for name, value in (("low", 3), ("high", 90))]
    net.op("Clip", [net.quantize("x", "q"), *bounds], "y")
    return net.model()


def clip_then_relu() -> Any:
    """Whose bounds are called what a table's own might be."""
    net = Net("int8")
    x = net.dequantize(net.quantize("x", "q"))
    net.op("Clip", [x, net.number("low", -0.7), net.number("high", 0.9)], "v")
    net.quantize(net.op("Relu", ["v"], "r"), "y", 0.01)
    return net.model()


def padded_real(value: float, scale: float = SCALE) -> Any:
    net = Net("int8")
    x = net.dequantize(net.quantize("x", "q"))
    net.op("Pad", [x, net.number("pads", PADS, np.int64), net.number("value", value)], "v")
    net.quantize("v", "y", scale)
    return net.model()


PADS = (0, 0, 1, 2, 0, 1, 2, 1)


def chosen(kind: str, qlinear: bool, *, constant: bool = False, mask: bool = False) -> Any:
    """One of two tensors of integers where a third is above a number; of other scales, or one of them a constant.

    mask: the condition is a constant, of fewer axes.
    """
    net = Net(kind)
    a = net.quantize("x", "a", 0.017, 11)
    if constant:
        net.number("b", np.arange(7) * 9, KINDS[kind])
        net.quant("b", 0.03, -40)
    else:
        net.quantize("x", "b", 0.031, -40)
    if mask:
        net.number("c", np.arange(63).reshape(9, 7) % 3 == 0, bool)
    else:
        net.op("Less", [net.dequantize(a), net.number("threshold", 0.4)], "c")
    if qlinear:
        given = ["c", "a", "a_s", "a_z", "b", "b_s", "b_z", *net.quant("y", 0.023, 5)]
        net.op("QLinearWhere", given, "y", "com.microsoft")
    else:
        net.op("Where", ["c", net.dequantize(a), net.dequantize("b")], "v")
        net.quantize("v", "y", 0.023, 5)
    return net.model()


def padded_sum() -> Any:
    """What inference of types knows nothing of: integers behind an operator of Microsoft's."""
    net = Net("uint8")
    net.quantize("x", "a", 0.017, 11)
    net.op("QLinearAdd", ["a", "a_s", "a_z", "a", "a_s", "a_z", *net.quant("v", 0.034, -3)], "v", "com.microsoft")
    net.op("MaxPool", ["v"], "m", kernel_shape=[2, 2])
    net.op("Pad", ["m", net.number("pads", PADS, np.int64)], "p")
    net.nodes.append(node("DequantizeLinear", ["p", "v_s", "v_z"], ["real"]))
    return model(net.nodes, {"x": SHAPE}, ["real"], net.constants)


def averaged(kind: str) -> Any:
    net = Net(kind)
    net.quantize("x", "q")
    net.op("QLinearGlobalAveragePool", ["q", "q_s", "q_z", *net.quant("y", 0.007, 5)], "y", "com.microsoft")
    return net.model()


def whole(kind: str, op: str) -> Any:
    """ConvInteger or MatMulInteger, scaled by float32 operators."""
    net = Net(kind)
    q = net.quantize("x", "q")
    shape, axis = ((8, 6, 3, 3), 0) if op == "ConvInteger" else ((378, 8), 1)
    w, _, zero = net.weights("w", shape, "int8", axis, channels=False)
    x = q if op == "ConvInteger" else net.op("Flatten", [q], "flat")
    net.op(op, [x, w, "q_z", zero], "sums")
    net.op("Cast", ["sums"], "cast", to=1)
    by = (8, 1, 1) if op == "ConvInteger" else (8,)
    net.op("Mul", ["cast", net.number("scale", np.random.default_rng(3).uniform(5e-5, 2e-4, by))], "scaled")
    net.op("Add", ["scaled", net.number("bias", drawn(9, *by))], "moved")
    net.quantize(net.op("Relu", ["moved"], "r"), "y", 0.05, -128)
    return net.model()


def function(kind: str, op: str, **attributes: Any) -> Any:
    net = Net(kind)
    net.quantize("x", "q")
    net.op(op, ["q", "q_s", "q_z", *net.quant("y", 0.006, 5)], "y", "com.microsoft", **attributes)
    return net.model()


CASES = {
    "qdq conv, a zero point for each channel": moved_channels(-120, 121),
    "conv integer": whole("uint8", "ConvInteger"),
    "matmul integer": whole("int8", "MatMulInteger"),
    "qlinear sigmoid": function("uint8", "QLinearSigmoid"),
    "qlinear leaky relu": function("int8", "QLinearLeakyRelu", alpha=0.2),
    "qdq conv": qdq_conv("int8", "int8", (8, 6, 3, 3), channels=True, pads=[1, 1, 1, 1]),
    "qdq conv uint8": qdq_conv("uint8", "uint8", (8, 6, 3, 3), channels=False, zero=121, strides=[2, 2]),
    "qdq conv uint8 and int8": qdq_conv("uint8", "int8", (8, 6, 3, 3), channels=True, pads=[1, 0, 2, 1]),
    "qdq conv, bias in real numbers": qdq_conv("int8", "int8", (8, 6, 1, 1), channels=True, bias="real"),
    "qdq depthwise": qdq_conv("int8", "int8", (6, 1, 3, 3), channels=True, group=6, bias=""),
    "qdq depthwise uint8": qdq_conv("uint8", "uint8", (6, 1, 3, 3), channels=False, zero=99, group=6, pads=[1] * 4),
    "qdq groups": qdq_conv("int8", "int8", (4, 3, 3, 3), channels=False, group=2),
    "qlinear conv": qlinear_conv("int8", "int8", (8, 6, 3, 3), channels=True, pads=[1, 1, 1, 1]),
    "qlinear conv uint8": qlinear_conv("uint8", "uint8", (8, 6, 3, 3), channels=False, zero=121),
    "qlinear conv uint8 and int8": qlinear_conv("uint8", "int8", (16, 6, 3, 3), channels=True, strides=[2, 2]),
    "qlinear depthwise": qlinear_conv("uint8", "int8", (12, 1, 3, 3), channels=True, group=6),
    "qdq gemm": matrix("int8", "Gemm"),
    "qdq gemm and one number": gemm_and_one_number(channels=False),
    "qdq gemm, a scale for each channel and one number": gemm_and_one_number(channels=True),
    "qgemm": matrix("uint8", "QGemm"),
    "qdq gemm, zero points from end to end": far_zero_points("Gemm"),
    "qlinear matmul, zero points from end to end": far_zero_points("QLinearMatMul"),
    "qlinear matmul": matrix("int8", "QLinearMatMul"),
    "qdq add": pair("Add", "int8", False),
    "qdq sub": pair("Sub", "int8", False),
    "qdq mul": pair("Mul", "uint8", False),
    "qdq add of itself": doubled("Add", False),
    "qdq square": doubled("Mul", False),
    "qlinear add of itself": doubled("Add", True),
    "qlinear square": doubled("Mul", True),
    "qlinear add": pair("Add", "int8", True),
    "qlinear add uint8": pair("Add", "uint8", True),
    "qlinear mul uint8": pair("Mul", "uint8", True),
    "qlinear add, every second a half": pair("Add", "int8", True, (0.03, 0.03, 0.06)),
    "qlinear mul uint8, many halves": pair("Mul", "uint8", True, (0.25, 0.5, 1.0)),
    "qdq sub uint8, many halves": pair("Sub", "uint8", False, (0.25, 0.5, 1.0)),
    "qdq concat": joined("int8", False),
    "qlinear concat": joined("uint8", True),
    "qdq where": chosen("int8", False),
    "qdq where, by a mask": chosen("uint8", False, mask=True),
    "qdq where, a constant": chosen("uint8", False, constant=True),
    "qlinear where": chosen("uint8", True),
    "qlinear where, by a mask": chosen("int8", True, mask=True),
    "qlinear where, a constant": chosen("int8", True, constant=True),
    "qlinear global average pool": averaged("uint8"),
    "qdq global average pool": qdq("int8", "GlobalAveragePool", scale=0.007),
    "qdq average pool": qdq("int8", "AveragePool", kernel_shape=[3, 3], strides=[2, 2], scale=0.03),
    "qdq average pool of one axis": qdq("int8", "AveragePool", (1, 6, 20), kernel_shape=[3], strides=[2], scale=0.03),
    "qdq average pool, pads count": qdq(
        "int8", "AveragePool", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1, scale=0.03
    ),
    "qdq average pool, pads do not": qdq("int8", "AveragePool", kernel_shape=[3, 3], pads=[1] * 4, scale=0.03),
    "qdq average pool ceil": qdq(
        "uint8", "AveragePool", (1, 6, 9, 9), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, scale=0.03
    ),
    "pad of integers with 0": raw("int8", "Pad", constants=[PADS]),
    "pad of uint8 with 0": raw("uint8", "Pad", constants=[PADS]),
    "pad of integers with their zero point": raw("int8", "Pad", -7, [PADS]),
    "pad of uint8 with their zero point": raw("uint8", "Pad", 121, [PADS]),
    "pad behind a qlinear operator": padded_sum(),
    "pad of real numbers with 0": padded_real(0),
    "pad of real numbers with another one": padded_real(SCALE * 5),
    "pad of real numbers with one between": padded_real(0.033, scale=0.011),
    "relu of integers": raw("int8", "Relu"),
    "abs of integers": raw("int8", "Abs"),
    "clip of integers": raw_clip("int8"),
    "clip of uint8": raw_clip("uint8"),
    "max of integers over an axis": raw("uint8", "ReduceMax", constants=[(1,)]),
    "qdq mean": qdq("int8", "ReduceMean", keepdims=0, scale=0.004),
    "qdq max pool": qdq("uint8", "MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], scale=SCALE),
    "qdq sigmoid": qdq("int8", "Sigmoid", scale=1 / 200),
    "qdq tanh": qdq("uint8", "Tanh", scale=1 / 100),
    "qdq hard swish": qdq("int8", "HardSwish", scale=0.021),
    "qdq leaky relu": qdq("int8", "LeakyRelu", alpha=0.1, scale=0.02),
    "qdq elu, then relu": qdq("int8", "Elu", after="Relu", scale=0.02),
    "qdq relu": qdq("uint8", "Relu", scale=0.011),
    "qdq clip, then relu": clip_then_relu(),
    "qdq transpose": qdq("int8", "Transpose", perm=[0, 2, 3, 1], scale=0.013),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_onnx_runtimes(case: str, tmp_path: Path) -> None:
    layers = held(CASES[case], tmp_path)
    assert all(one.near <= max(6, one.values / 20) for one in layers.ties.values()), layers.ties
    if case.startswith("qlinear") or case == "qgemm":
        assert sum(one.differing for one in layers.ties.values()) == 0


@pytest.mark.parametrize("layout", ["planar depthwise", "NCHW"])
def test_in_other_layouts(layout: str, tmp_path: Path) -> None:
    held(CASES["qlinear depthwise"], tmp_path, layout)


def test_channels_without_an_exact_multiplier_differ_in_near_ties_alone(tmp_path: Path) -> None:
    """256 channels on 864 products: a few have steps that contradict each other."""
    net = Net("int8")
    q = net.quantize("x", "q", 0.05)
    w = net.weights("w", (256, 96, 3, 3), "int8", 0, channels=True)
    net.op("QLinearConv", [q, "q_s", "q_z", *w, *net.quant("y", 0.4, 5)], "y")
    layers = held(net.model((1, 96, 12, 12)), tmp_path, runs=1)
    conv = next(layer for layer in layers.graph.layers if layer.kind == "conv2d")
    assert conv.op.rounding == "single"
    assert sum(one.differing for one in layers.ties.values()) < 10


def test_sums_that_are_scaled_beyond_int32_are_refused() -> None:
    net = Net("int8")
    q = net.quantize("x", "q")
    w = net.weights("w", (8, 6, 3, 3), "int8", 0, channels=True)
    net.op("QLinearConv", [q, "q_s", "q_z", *w, *net.quant("y", 1e-8, 5)], "y")
    with pytest.raises(StageError, match=r"would scale its sums to \S+, beyond int32: its scales make no sense"):
        graph_of(net.model())


@pytest.mark.parametrize(("shape", "kernel"), [((1, 6, 4, 20), [1, 2]), ((1, 6, 20), [2])])
def test_near_ties_are_known_in_windows_over_one_axis_too(shape: Any, kernel: Any, tmp_path: Path) -> None:
    """Half the sum of two numbers on one scale: ties, which are those of the pool, not of the reshape behind it."""
    layers = held(qdq("int8", "AveragePool", shape, kernel_shape=kernel, scale=SCALE), tmp_path)
    (ties,) = layers.ties.values()
    assert ties.near > ties.values / 3 > 0 < ties.differing


def test_two_roundings_differ_more_often_and_in_near_ties_alone(tmp_path: Path) -> None:
    once, twice = (
        held(CASES["qdq conv"], folder, twice=twice)
        for folder, twice in ((tmp_path / "once", False), (tmp_path / "twice", True))
    )
    assert once.ties["y"].differing == 0 < twice.ties["y"].differing < twice.ties["y"].near
    assert once.ties["y"].near < twice.ties["y"].near


def test_a_multiplier_that_is_off_is_found(tmp_path: Path) -> None:
    """Half a percent in one channel: values differ that are no near ties."""
    graph, theirs, description = graph_of(CASES["qdq conv"])
    layer = next(layer for layer in graph.layers if layer.kind == "conv2d")
    graph.constants[layer.constants["multiplier"]][0] -= graph.constants[layer.constants["multiplier"]][0] // 200
    graph.save(tmp_path)
    (tmp_path / "tensors.json").write_text(json.dumps(description))
    layers = OnnxLayers(tmp_path, tmp_path / "tensors.json", theirs)
    with pytest.raises(StageError, match=r"layer 2 \(conv2d\) 'y' is not what ONNX Runtime .* makes of its inputs"):
        layers.run([np.random.default_rng(0).uniform(-3, 3, SHAPE).astype(np.float32)])


def test_zero_points_that_leave_no_int8_are_refused() -> None:
    with pytest.raises(
        StageError, match="has weights with a zero point for each channel, less which they are not int8"
    ):
        graph_of(moved_channels(-127, 128))


def test_real_numbers_that_onnx_does_not_have_may_move_before_integers(tmp_path: Path) -> None:
    """A ConvTranspose between integers is a TRANSPOSE_CONV and a slice of real numbers."""
    net = Net("int8")
    x = net.dequantize(net.quantize("x", "q"))
    net.number("w", drawn(1, 6, 4, 3, 3))
    sizes = {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}
    net.quantize(net.op("ConvTranspose", [x, "w"], "v", **sizes), "y", 0.05, 3)
    held(net.model(), tmp_path)
