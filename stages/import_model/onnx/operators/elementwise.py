"""Functions of one tensor, and of two that broadcast, of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stages.import_model.onnx.translation import Node, Translation, axis_in, clip_bounds
from stages.import_model.onnx.values import Array, Held, Order, Stored, plain_order
from stages.models.tflite_writer import Tensor
from stages.operators.operation import Refused, listed

Translator = Callable[[Translation, Node], None]


def _unary(op: str, table: str = "", **fields: Any) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        x = t.held(node, 0)
        made = t.builder.emit(op, [x.tensor], x.tensor.shape, None, node.outputs[0], table, fields)
        _follow(t, node, x, made)

    return translate


def _follow(t: Translation, node: Node, x: Held, made: Tensor) -> None:
    """The result lies as its input does."""
    t.bind(node.outputs[0], Held(made, x.base, x.shape, x.order))


def leaky_relu(t: Translation, node: Node) -> None:
    x, alpha = t.held(node, 0), float(node.attributes.get("alpha", 0.01))
    _follow(t, node, x, t.builder.leaky_relu(x.tensor, alpha, name=node.outputs[0]))


def elu(t: Translation, node: Node) -> None:
    if node.attributes.get("alpha", 1.0) != 1.0:
        raise Refused(f"has alpha {node.attributes['alpha']:g}; 1 is supported")
    _unary("ELU")(t, node)


def clip(t: Translation, node: Node) -> None:
    x, (low, high) = t.held(node, 0), clip_bounds(t, node)
    named = {(0.0, np.inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}.get((low, high))
    name, made = node.outputs[0], x.tensor
    if named:
        made = t.builder.emit(named, [made], made.shape, None, name)
    elif np.isinf(low) and np.isinf(high):
        t.bind(name, x)
        return
    else:
        made = clamped(t, made, low, high, name)
    _follow(t, node, x, made)


def clamped(t: Translation, x: Tensor, low: float, high: float, name: str) -> Tensor:
    """min(max(x, low), high); the last of them is called `name`."""
    steps = [("MAXIMUM", low)] * (not np.isinf(low)) + [("MINIMUM", high)] * (not np.isinf(high))
    for number, (op, bound) in enumerate(steps, 1):
        constant = t.builder.constant(f"{name}/{op.lower()}", np.array([bound], np.float32))
        called = name if number == len(steps) else f"{name}/{number}"
        x = t.builder.emit(op, [x, constant], x.shape, None, called, "MaximumMinimumOptions")
    return x


def hard_sigmoid(t: Translation, node: Node) -> None:
    """max(0, min(1, alpha * x + beta))."""
    x, name = t.held(node, 0), node.outputs[0]
    alpha, beta = (
        np.array([node.attributes.get(key, default)], np.float32) for key, default in (("alpha", 0.2), ("beta", 0.5))
    )
    made = t.builder.mul(x.tensor, t.builder.constant(f"{name}/alpha", alpha), name=f"{name}/scaled")
    made = t.builder.add(made, t.builder.constant(f"{name}/beta", beta), name=f"{name}/moved")
    _follow(t, node, x, clamped(t, made, 0.0, 1.0, name))


def prelu(t: Translation, node: Node) -> None:
    x, slope = t.settled(t.held(node, 0)), t.stored(node, 1, "the slope")
    constant = t.builder.constant(f"{node.outputs[0]}/slope", _laid(slope, x))
    _follow(t, node, x, t.builder.emit("PRELU", [x.tensor, constant], x.tensor.shape, None, node.outputs[0]))


def _laid(values: Array, x: Held) -> Array:
    """A constant that broadcasts against x, with its axes as they lie there."""
    if values.ndim > len(x.shape):
        raise Refused(f"broadcasts {listed(x.shape)} to the {values.ndim} axes of a constant")
    whole = values.reshape((1,) * (len(x.shape) - values.ndim) + values.shape)
    return np.ascontiguousarray(whole.transpose(x.order))


def operands(t: Translation, node: Node) -> tuple[list[Tensor], Order]:
    """The two inputs as tensors in one order that broadcast, and the order."""
    first, second = t.value(node, 0), t.value(node, 1)
    parts = [
        value if isinstance(value, Stored) else t.real(name, value)
        for name, value in zip(node.inputs, (first, second), strict=True)
    ]
    computed = [part for part in parts if isinstance(part, Held)]
    rank = max(len(part.shape) if isinstance(part, Held) else part.values.ndim for part in parts)
    if any(len(part.shape) != rank for part in computed):
        computed = [_with_rank(t, part, rank) for part in computed]
    computed = t.aligned(computed)
    found, rest = [], iter(computed)
    for number, part in enumerate(parts):
        if isinstance(part, Held):
            found.append(next(rest).tensor)
        else:
            laid = _laid(part.real, computed[0])
            found.append(t.builder.constant(f"{node.outputs[0]}/operand{number}", laid))
    return found, computed[0].order


def _with_rank(t: Translation, x: Held, rank: int) -> Held:
    if len(x.shape) == rank:
        return x
    plain = t.plain(x)
    shape = (1,) * (rank - len(x.shape)) + x.shape
    return Held.of(t.builder.reshape(plain.tensor, shape, name=f"{plain.tensor.name}/axes"), plain_order(rank))


def _binary(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        tensors, order = operands(t, node)
        out = t.destination(node, integers=False)
        assert out is not None
        method = getattr(t.builder, op.lower(), None)
        if method is not None:
            made = method(*tensors, activation=out.activation, name=out.name)
        else:
            made = _plain_binary(t, op, tensors, out.name, out.activation)
        t.bind(out.name, Held.of(made, order))

    return translate


def _plain_binary(t: Translation, op: str, tensors: list[Tensor], name: str, activation: str) -> Tensor:
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    if op != "DIV":
        return t.builder.emit(op, tensors, shape, None, name, "MaximumMinimumOptions")
    number = {"none": 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3}[activation]
    return t.builder.emit(op, tensors, shape, None, name, "DivOptions", {"fusedActivationFunction": number})


def _extreme(op: str) -> Translator:
    """Max and Min of two tensors."""

    def translate(t: Translation, node: Node) -> None:
        if len(node.inputs) != 2:
            raise Refused(f"has {len(node.inputs)} inputs; two are supported")
        tensors, order = operands(t, node)
        t.bind(node.outputs[0], Held.of(_plain_binary(t, op, tensors, node.outputs[0], "none"), order))

    return translate


def power(t: Translation, node: Node) -> None:
    exponent = t.stored(node, 1, "the exponent")
    if exponent.size != 1 or float(exponent.reshape(())) not in (2.0, 0.5):
        raise Refused(f"has the exponent {listed(exponent.reshape(-1))}; 2 and 0.5 are supported")
    _unary("SQUARE" if float(exponent.reshape(())) == 2.0 else "SQRT")(t, node)


def batch_normalization(t: Translation, node: Node) -> None:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, of each channel: a product and a sum."""
    x = t.settled(t.held(node, 0))
    scale, bias, mean, variance = (t.stored(node, at, "its constants").astype(np.float64) for at in range(1, 5))
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    shape = (-1, *(1,) * (len(x.shape) - 2))
    out = t.destination(node, integers=False)
    assert out is not None
    constants = [
        t.builder.constant(f"{out.name}/{what}", _laid(values.astype(np.float32).reshape(shape), x))
        for what, values in (("factor", factor), ("shift", bias - mean * factor))
    ]
    made = t.builder.mul(x.tensor, constants[0], name=f"{out.name}/scaled")
    made = t.builder.add(made, constants[1], activation=out.activation, name=out.name)
    t.bind(out.name, Held.of(made, x.order))


def concat(t: Translation, node: Node) -> None:
    """Of real numbers; constants may be among them."""
    values = [t.value(node, position) for position in range(len(node.inputs))]
    tensors, order, axis = joined(
        t, node, [None if isinstance(v, Stored) else t.real(n, v) for n, v in zip(node.inputs, values, strict=True)]
    )
    made = t.builder.concatenation(tensors, order.index(axis), name=node.outputs[0])
    t.bind(node.outputs[0], Held.of(made, order))


def joined(t: Translation, node: Node, parts: list[Held | None]) -> tuple[list[Tensor], Order, int]:
    """What a Concat reads, in one order of axes; None for a constant. Also the order, and the axis in ONNX."""
    computed = t.aligned([part for part in parts if part is not None])
    order, rest = computed[0].order, iter(computed)
    axis = axis_in(int(node.attributes.get("axis", 1)), len(order))
    found = []
    for position, part in enumerate(parts):
        if part is not None:
            found.append(next(rest).tensor)
            continue
        laid = np.ascontiguousarray(t.stored(node, position, "a part").transpose(order))
        found.append(t.builder.constant(f"{node.outputs[0]}/part{position}", laid))
    return found, order, axis


def softmax(t: Translation, node: Node) -> None:
    """Softmax and LogSoftmax over one axis, which is brought to the end."""
    x = t.settled(t.held(node, 0))
    rank = len(x.shape)
    axis = axis_in(int(node.attributes.get("axis", -1 if t.opset >= 13 else 1)), rank)
    if t.opset < 13 and any(size != 1 for size in x.shape[axis + 1 :]):
        raise Refused(f"is over all axes from {axis} on of {listed(x.shape)}; one is supported")
    if x.order[-1] != axis:
        x = t.ordered(x, (*(one for one in range(rank) if one != axis), axis))
    if node.op == "Softmax":
        made = t.builder.softmax(x.tensor, name=node.outputs[0])
    else:
        made = t.builder.emit("LOG_SOFTMAX", [x.tensor], x.tensor.shape, None, node.outputs[0], "LogSoftmaxOptions")
    t.bind(node.outputs[0], Held.of(made, x.order))


def reduce_axes(t: Translation, node: Node, rank: int) -> list[int]:
    given = node.attributes.get("axes")
    if given is None and node.has(1):
        given = t.integers(node, 1, "the axes")
    if not given:
        if node.attributes.get("noop_with_empty_axes", 0):
            raise Refused("has no axes to reduce over")
        given = range(rank)
    return sorted({axis_in(int(axis), rank) for axis in given})


def reduced_order(x: Held, axes: list[int], keep: bool) -> Order:
    """The order of what is left of the axes of x."""
    left = [axis for axis in range(len(x.shape)) if axis not in axes]
    return x.order if keep else tuple(left.index(axis) for axis in x.order if axis in left)


def _reduce(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        x = t.settled(t.held(node, 0))
        axes, keep = reduce_axes(t, node, len(x.shape)), bool(node.attributes.get("keepdims", 1))
        reduce_held(t, node.outputs[0], op, x, axes, keep=keep)

    return translate


def reduce_held(t: Translation, name: str, op: str, x: Held, axes: list[int], *, keep: bool) -> None:
    places = sorted(x.order.index(axis) for axis in axes)
    shape = [1 if place in places else size for place, size in enumerate(x.tensor.shape) if keep or place not in places]
    constant = t.builder.constant(f"{name}/axes", np.array(places, np.int32))
    made = t.builder.emit(op, [x.tensor, constant], shape, None, name, "ReducerOptions", {"keepDims": keep})
    t.bind(name, Held.of(made, reduced_order(x, axes, keep)))


def _global(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        x = t.settled(t.held(node, 0))
        reduce_held(t, node.outputs[0], op, x, list(range(2, len(x.shape))), keep=True)

    return translate


TRANSLATORS: dict[str, Translator] = {
    "Abs": _unary("ABS", "AbsOptions"),
    "Add": _binary("ADD"),
    "BatchNormalization": batch_normalization,
    "Clip": clip,
    "Concat": concat,
    "Cos": _unary("COS", "CosOptions"),
    "Div": _binary("DIV"),
    "Elu": elu,
    "Exp": _unary("EXP", "ExpOptions"),
    "Floor": _unary("FLOOR"),
    "GlobalAveragePool": _global("MEAN"),
    "GlobalMaxPool": _global("REDUCE_MAX"),
    "HardSigmoid": hard_sigmoid,
    "HardSwish": _unary("HARD_SWISH", "HardSwishOptions"),
    "LeakyRelu": leaky_relu,
    "Log": _unary("LOG"),
    "LogSoftmax": softmax,
    "Max": _extreme("MAXIMUM"),
    "Min": _extreme("MINIMUM"),
    "Mul": _binary("MUL"),
    "Neg": _unary("NEG", "NegOptions"),
    "PRelu": prelu,
    "Pow": power,
    "ReduceMax": _reduce("REDUCE_MAX"),
    "ReduceMean": _reduce("MEAN"),
    "ReduceMin": _reduce("REDUCE_MIN"),
    "ReduceSum": _reduce("SUM"),
    "Relu": _unary("RELU"),
    "Sigmoid": _unary("LOGISTIC"),
    "Sin": _unary("SIN"),
    "Softmax": softmax,
    "Sqrt": _unary("SQRT"),
    "Sub": _binary("SUB"),
    "Tanh": _unary("TANH"),
}
