"""Functions of one tensor, and of two that broadcast, of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.tables import looked_up, requantized
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, axis_in, clip_bounds
from stages.import_model.onnx.values import Array, Held, Order, Real, Stored, plain_order
from stages.ir.arithmetic.pairs import Pair, exact_halves, nearest_multipliers
from stages.ir.models.onnx_names import LOWERED
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

Translator = Callable[[Translation, Node], None]


def _unary(op: str, table: str = "", **fields: Any) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        if looked_up(t, node):
            return
        x = t.held(node, 0)
        made = t.builder.emit(op, [x.tensor], x.tensor.shape, None, node.outputs[0], table, fields)
        _follow(t, node, x, made)

    return translate


def _follow(t: Translation, node: Node, x: Held, made: Tensor) -> None:
    """The result lies as its input does."""
    t.bind(node.outputs[0], Held(made, x.base, x.shape, x.order))


def leaky_relu(t: Translation, node: Node) -> None:
    if looked_up(t, node):
        return
    x, alpha = t.held(node, 0), float(node.attributes.get("alpha", 0.01))
    _follow(t, node, x, t.builder.leaky_relu(x.tensor, alpha, name=node.outputs[0]))


def gelu(t: Translation, node: Node) -> None:
    approximate = node.attributes.get("approximate", "none") == "tanh"
    _unary("GELU", "GeluOptions", approximate=approximate)(t, node)


def clip(t: Translation, node: Node) -> None:
    if looked_up(t, node):
        return
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
    if looked_up(t, node):
        return
    x, name = t.held(node, 0), node.outputs[0]
    alpha, beta = (
        np.array([node.attributes.get(key, default)], np.float32) for key, default in (("alpha", 0.2), ("beta", 0.5))
    )
    made = t.builder.mul(x.tensor, t.builder.constant(f"{name}/alpha", alpha), name=f"{name}/scaled")
    made = t.builder.add(made, t.builder.constant(f"{name}/beta", beta), name=f"{name}/moved")
    _follow(t, node, x, clamped(t, made, 0.0, 1.0, name))


def prelu(t: Translation, node: Node) -> None:
    x, slope = t.settled(t.held(node, 0)), t.stored(node, 1, "the slope")
    slopes = laid(slope, x)
    if any(size not in (1, whole) for size, whole in zip(slopes.shape, x.tensor.shape, strict=True)):
        raise Refused(f"has the slope {listed(slope.shape)} for {listed(x.shape)}")
    constant = t.builder.constant(f"{node.outputs[0]}/slope", slopes)
    _follow(t, node, x, t.builder.emit("PRELU", [x.tensor, constant], x.tensor.shape, None, node.outputs[0]))


def laid(values: Array, x: Held) -> Array:
    """A constant that broadcasts against x, with its axes as they lie there."""
    if values.ndim > len(x.shape):
        raise Refused(f"broadcasts {listed(x.shape)} to the {values.ndim} axes of a constant")
    whole = values.reshape((1,) * (len(x.shape) - values.ndim) + values.shape)
    return np.ascontiguousarray(whole.transpose(x.order))


def operands(t: Translation, node: Node) -> tuple[list[Tensor], Order]:
    """The two inputs as tensors in one order that broadcast, and the order."""
    return laid_alike(t, [part_of(t, node, at) for at in (0, 1)], node.outputs[0])


def part_of(t: Translation, node: Node, at: int) -> Held | Stored:
    """An operand as real numbers, or whatever else it is but integers with a scale."""
    value = t.value(node, at)
    return Stored(value.real) if isinstance(value, Stored) else t.real(node.inputs[at], value)


def by_a_number(t: Translation, node: Node) -> bool:
    """Whether it is a function between integers: of one tensor, and one number on the other side."""
    values = [t.value(node, at) for at in (0, 1)]
    computed = [at for at, value in enumerate(values) if not isinstance(value, Stored)]
    if len(computed) != 1:
        return False
    x, number = values[computed[0]], values[1 - computed[0]]
    if not isinstance(x, Real) or not isinstance(number, Stored) or number.values.size != 1:
        return False
    return number.values.ndim <= len(x.held.shape) and looked_up(t, node, computed[0])


def laid_alike(t: Translation, parts: Sequence[Held | Stored], name: str) -> tuple[list[Tensor], Order]:
    """Tensors that broadcast in one order of axes, and the order; constants become tensors, called after `name`."""
    computed = [part for part in parts if isinstance(part, Held)]
    rank = max(len(part.shape) if isinstance(part, Held) else part.values.ndim for part in parts)
    if any(len(part.shape) != rank for part in computed):
        computed = [with_rank(t, part, rank) for part in computed]
    computed = t.aligned(computed)
    found, rest = [], iter(computed)
    for number, part in enumerate(parts):
        if isinstance(part, Held):
            found.append(next(rest).tensor)
        else:
            values, quant = laid(part.values, computed[0]), _quantization(part)
            if values.dtype == np.uint8:
                values = (values.astype(np.int16) - LOWERED).astype(np.int8)
            found.append(t.builder.constant(f"{name}/operand{number}", values, *(quant or (None,))))
    return found, computed[0].order


def with_rank(t: Translation, x: Held, rank: int) -> Held:
    if len(x.shape) == rank:
        return x
    plain = t.plain(x)
    shape = (1,) * (rank - len(x.shape)) + x.shape
    return Held.of(t.builder.reshape(plain.tensor, shape, name=f"{plain.tensor.name}/axes"), plain_order(rank))


def _binary(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        if by_a_number(t, node) or _between_integers(t, node, op):
            return
        tensors, order = operands(t, node)
        out = t.destination(node, integers=False)
        assert out is not None
        method = getattr(t.builder, op.lower(), None)
        if method is not None:
            made = method(*tensors, activation=out.activation, name=out.name)
        else:
            made = _plain_binary(t, op, tensors, out.name, out.activation)
        t.finish(out, Held.of(made, order))

    return translate


def _between_integers(t: Translation, node: Node, op: str) -> bool:
    """Whether it is a sum or a product of two tensors of integers, for which there are exact multipliers."""
    if op not in ("ADD", "SUB", "MUL"):
        return False
    values = [t.value(node, at) for at in (0, 1)]
    parts = [value.held if isinstance(value, Real) else value for value in values if not isinstance(value, Held)]
    out = t.destination(node, integers=True)
    return out is not None and len(parts) == 2 and of_integers(t, op, parts, out)


def of_integers(t: Translation, op: str, parts: Sequence[Held | Stored], out: Out, lowered: int | None = None) -> bool:
    """Appends the sum or product of two tensors of integers; False where no multipliers give it.

    lowered: as of `stages.ir.arithmetic.pairs.Pair`.
    """
    quants = [_quantization(part) for part in parts]
    if any(quant is None for quant in quants) or out.quant is None:
        return False
    first, second = (quant for quant in quants if quant is not None)
    pair = Pair(op.lower(), first, second, out.quant, *out.bounds, lowered)
    if isinstance(parts[0], Held) and parts[0] == parts[1]:
        _of_itself(t, parts[0], pair, out)
        return True
    if nearest_multipliers(pair) is None and exact_halves(pair) is None:
        return False
    tensors, order = laid_alike(t, parts, out.name)
    made = getattr(t.builder, op.lower())(*tensors, activation=out.activation, out=out.quant, name=out.name)
    t.rule(lowered=lowered)
    t.finish(out, Held.of(made, order))
    return True


def _of_itself(t: Translation, x: Held, pair: Pair, out: Out) -> None:
    """A sum or product of a tensor and itself: a table."""
    made = t.builder.quantize(x.tensor, "int8", pair.out, name=out.name)
    numbers = np.arange(-128, 128, dtype=np.int64)
    t.rule(table=[int(value) for value in pair.expected(numbers, numbers)], function=pair.op)
    t.finish(out, Held(made, x.base, x.shape, x.order))


def _quantization(part: Held | Stored) -> tuple[float, int] | None:
    """Scale and zero point of integers (int8) with one of each."""
    if isinstance(part, Held):
        return (part.tensor.scale[0], part.tensor.zero_point[0]) if part.tensor.scale else None
    if part.scale is None or part.scale.size != 1 or part.values.dtype not in (np.int8, np.uint8):
        return None
    lowered = LOWERED if part.values.dtype == np.uint8 else 0
    return float(part.scale.reshape(-1)[0]), int(np.asarray(part.zero_point).reshape(-1)[0]) - lowered


def _plain_binary(t: Translation, op: str, tensors: list[Tensor], name: str, activation: str = "none") -> Tensor:
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    if op != "DIV":
        table = "PowOptions" if op == "POW" else "MaximumMinimumOptions"
        return t.builder.emit(op, tensors, shape, None, name, table)
    number = {"none": 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3}[activation]
    return t.builder.emit(op, tensors, shape, None, name, "DivOptions", {"fusedActivationFunction": number})


def _joining(op: str, *, mean: bool = False) -> Translator:
    """Max, Min, Sum and Mean of any number of tensors."""

    def translate(t: Translation, node: Node) -> None:
        if len(node.inputs) == 2 and not mean and by_a_number(t, node):
            return
        parts = [part_of(t, node, at) for at in range(len(node.inputs))]
        tensors, order = laid_alike(t, parts, node.outputs[0])
        made, name = tensors[0], node.outputs[0]
        for tensor in tensors[1:]:
            made = t.builder.add(made, tensor, name=name) if op == "ADD" else _plain_binary(t, op, [made, tensor], name)
        if mean:
            made = t.builder.mul(made, t.builder.constant(f"{name}/share", np.array([1 / len(tensors)], np.float32)))
        t.bind(name, Held.of(made, order))

    return translate


def power(t: Translation, node: Node) -> None:
    """By a constant a function of one tensor; of 2 and 0.5 there are functions of their own."""
    if by_a_number(t, node):
        return
    exponent = t.value(node, 1)
    number = float(exponent.real.reshape(-1)[0]) if isinstance(exponent, Stored) and exponent.values.size == 1 else None
    if number in (2.0, 0.5) and isinstance(exponent, Stored) and not exponent.values.ndim:
        _unary("SQUARE" if number == 2.0 else "SQRT")(t, node)
        return
    parts = [part_of(t, node, at) for at in (0, 1)]
    parts = [Stored(part.real.astype(np.float32)) if isinstance(part, Stored) else part for part in parts]
    tensors, order = laid_alike(t, parts, node.outputs[0])
    t.bind(node.outputs[0], Held.of(_plain_binary(t, "POW", tensors, node.outputs[0]), order))


def concat(t: Translation, node: Node) -> None:
    """Constants may be among them. Between integers each part is brought to the scale of the result."""
    if _concat_integers(t, node):
        return
    values = [t.value(node, position) for position in range(len(node.inputs))]
    if all(isinstance(value, Held) and value.tensor.scale for value in values):
        parts = [value for value in values if isinstance(value, Held)]
        if len({(part.tensor.scale[0], part.tensor.zero_point[0]) for part in parts}) > 1:
            raise Refused("joins integers of several scales")
        tensors, order, axis = joined(t, node, list(parts))
        made = t.builder.concatenation(tensors, order.index(axis), name=node.outputs[0])
        t.bind(node.outputs[0], Held.of(made, order))
        return
    tensors, order, axis = joined(
        t, node, [None if isinstance(v, Stored) else t.real(n, v) for n, v in zip(node.inputs, values, strict=True)]
    )
    made = t.builder.concatenation(tensors, order.index(axis), name=node.outputs[0])
    t.bind(node.outputs[0], Held.of(made, order))


def _concat_integers(t: Translation, node: Node) -> bool:
    values = [t.value(node, position) for position in range(len(node.inputs))]
    out = t.destination(node, integers=True)
    if out is None or out.activation != "none" or not all(isinstance(value, Real) for value in values):
        return False
    concat_held(t, node, [value.held for value in values if isinstance(value, Real)], out)
    return True


def concat_held(t: Translation, node: Node, parts: Sequence[Held], out: Out) -> None:
    """Joins integers, each by a table where its scale is another one."""
    assert out.quant is not None
    brought = [requantized(t, part, out.quant, f"{out.name}/part{at}") for at, part in enumerate(parts)]
    tensors, order, axis = joined(t, node, list(brought))
    made = t.builder.concatenation(tensors, order.index(axis), name=out.name)
    t.finish(out, Held.of(made, order))


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
        stored = t.stored(node, position, "a part")
        if stored.ndim != len(order):
            raise Refused(f"joins a constant {listed(stored.shape)} to tensors with {len(order)} axes")
        ordered = np.ascontiguousarray(stored.transpose(order))
        found.append(t.builder.constant(f"{node.outputs[0]}/part{position}", ordered))
    return found, order, axis


def softmax(t: Translation, node: Node) -> None:
    """Softmax and LogSoftmax over one axis, which is brought to the end, or all from one on before opset 13."""
    value, out, default = t.value(node, 0), t.quantized(node.outputs[0]), -1 if t.opset >= 13 else 1
    has_scale = out is not None and out.quant is not None and _SMALLEST_SHARE <= out.quant[0] <= 1
    if node.op == "Softmax" and isinstance(value, Real) and out is not None and has_scale:
        shares(t, *rows_of(t, node, value.held, default, t.opset), out, sums="shares")
        return
    x, shape = rows_of(t, node, t.held(node, 0), default, t.opset)
    if node.op == "Softmax":
        made = t.builder.softmax(x.tensor, name=node.outputs[0])
    else:
        made = t.builder.emit("LOG_SOFTMAX", [x.tensor], x.tensor.shape, None, node.outputs[0], "LogSoftmaxOptions")
    t.bind(node.outputs[0], replace(Held.of(made, x.order), shape=shape))


_SMALLEST_SHARE = 2.0**-24  # of the scale of a Softmax between integers


def shares(t: Translation, x: Held, shape: tuple[int, ...], out: Out, **rule: Any) -> None:
    """A Softmax between integers of what `rows_of` gives."""
    made = t.builder.emit("SOFTMAX", [x.tensor], x.tensor.shape, out.quant, out.name, "SoftmaxOptions", {"beta": 1.0})
    t.rule(**rule)
    t.finish(out, replace(Held.of(made, x.order), shape=shape))


def rows_of(t: Translation, node: Node, x: Held, axis: int, opset: int) -> tuple[Held, tuple[int, ...]]:
    """A tensor whose last axis in memory are the rows of a Softmax, and the shape that it has in ONNX.

    axis: where the operator names none; opset: before 13 it is over all axes from that one on.
    """
    rank = len(x.shape)
    axis = axis_in(int(node.attributes.get("axis", axis)), rank)
    if opset < 13 and any(size != 1 for size in x.shape[axis + 1 :]):
        plain = t.plain(x)
        rows = (prod(x.shape[:axis]), prod(x.shape[axis:]))
        return Held.of(t.builder.reshape(plain.tensor, rows, name=f"{node.outputs[0]}/rows"), (0, 1)), x.shape
    x = t.settled(x)
    if x.order[-1] != axis:
        x = t.ordered(x, (*(one for one in range(rank) if one != axis), axis))
    return x, x.shape


TRANSLATORS: dict[str, Translator] = {
    "Abs": _unary("ABS", "AbsOptions"),
    "Add": _binary("ADD"),
    "Ceil": _unary("CEIL"),
    "Clip": clip,
    "Concat": concat,
    "Cos": _unary("COS", "CosOptions"),
    "Div": _binary("DIV"),
    "Exp": _unary("EXP", "ExpOptions"),
    "Floor": _unary("FLOOR"),
    "Gelu": gelu,
    f"{MICROSOFT}.Gelu": gelu,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": _unary("HARD_SWISH", "HardSwishOptions"),
    "LeakyRelu": leaky_relu,
    "Log": _unary("LOG"),
    "LogSoftmax": softmax,
    "Max": _joining("MAXIMUM"),
    "Mean": _joining("ADD", mean=True),
    "Min": _joining("MINIMUM"),
    "Mul": _binary("MUL"),
    "Neg": _unary("NEG", "NegOptions"),
    "PRelu": prelu,
    "Pow": power,
    "Relu": _unary("RELU"),
    "Round": _unary("ROUND"),
    "Sigmoid": _unary("LOGISTIC"),
    "Sin": _unary("SIN"),
    "Softmax": softmax,
    "Sqrt": _unary("SQRT"),
    "Sub": _binary("SUB"),
    "Sum": _joining("ADD"),
    "Tanh": _unary("TANH"),
}
