"""ONNX networks between integers: QuantizeLinear and DequantizeLinear around operators, and QLinear operators."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.support.onnx_graphs import drawn, model, node

SCALE = 0.02
SHAPE = (1, 6, 9, 7)
Constants = dict[str, Any]
KINDS = {"int8": np.int8, "uint8": np.uint8}
TYPES = {"int8": 3, "uint8": 2}


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
