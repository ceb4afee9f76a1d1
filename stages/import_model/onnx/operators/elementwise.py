"""Elementwise functions of one tensor and of tensors that broadcast, and Concat."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.tables import lower_to_table, requantized
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, Translator, axis_in, clip_bounds
from stages.import_model.onnx.values import Constant, Dequantized, Order, TensorView, plain_order
from stages.ir.arithmetic.pairs import Pair, exact_halves, nearest_multipliers
from stages.ir.arrays import Array
from stages.ir.models.onnx_names import LOWERED
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed


def _unary(op: str, table: str = "", **fields: Any) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        if lower_to_table(t, node):
            return
        x = t.computed(node, 0)
        result = t.builder.emit(op, [x.tensor], x.tensor.shape, None, node.outputs[0], table, fields)
        _bind_like(t, node, x, result)

    return translate


def _bind_like(t: Translation, node: Node, x: TensorView, result: Tensor) -> None:
    """Bind the result, which has the axis order of the input."""
    t.bind(node.outputs[0], TensorView(result, x.base, x.shape, x.order))


def leaky_relu(t: Translation, node: Node) -> None:
    """Translate LeakyRelu."""
    if lower_to_table(t, node):
        return
    x, alpha = t.computed(node, 0), float(node.attributes.get("alpha", 0.01))
    _bind_like(t, node, x, t.builder.leaky_relu(x.tensor, alpha, name=node.outputs[0]))


def gelu(t: Translation, node: Node) -> None:
    """Translate Gelu, exact or by tanh."""
    approximate = node.attributes.get("approximate", "none") == "tanh"
    _unary("GELU", "GeluOptions", approximate=approximate)(t, node)


def clip(t: Translation, node: Node) -> None:
    """Translate Clip."""
    if lower_to_table(t, node):
        return
    x, (low, high) = t.computed(node, 0), clip_bounds(t, node)
    activation = {(0.0, np.inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}.get((low, high))
    name, result = node.outputs[0], x.tensor
    if activation:
        result = t.builder.emit(activation, [result], result.shape, None, name)
    elif np.isinf(low) and np.isinf(high):
        t.bind(name, x)
        return
    else:
        result = clamped(t, result, low, high, name)
    _bind_like(t, node, x, result)


def clamped(t: Translation, x: Tensor, low: float, high: float, name: str) -> Tensor:
    """Append min(max(x, low), high); the last operator is called `name`."""
    steps = [("MAXIMUM", low)] * (not np.isinf(low)) + [("MINIMUM", high)] * (not np.isinf(high))
    for number, (op, bound) in enumerate(steps, 1):
        constant = t.builder.constant(f"{name}/{op.lower()}", np.array([bound], np.float32))
        result_name = name if number == len(steps) else f"{name}/{number}"
        x = t.builder.emit(op, [x, constant], x.shape, None, result_name, "MaximumMinimumOptions")
    return x


def hard_sigmoid(t: Translation, node: Node) -> None:
    """Translate HardSigmoid: max(0, min(1, alpha * x + beta))."""
    if lower_to_table(t, node):
        return
    x, name = t.computed(node, 0), node.outputs[0]
    alpha, beta = (
        np.array([node.attributes.get(key, default)], np.float32) for key, default in (("alpha", 0.2), ("beta", 0.5))
    )
    result = t.builder.mul(x.tensor, t.builder.constant(f"{name}/alpha", alpha), name=f"{name}/scaled")
    result = t.builder.add(result, t.builder.constant(f"{name}/beta", beta), name=f"{name}/moved")
    _bind_like(t, node, x, clamped(t, result, 0.0, 1.0, name))


def prelu(t: Translation, node: Node) -> None:
    """Translate PRelu."""
    x, slope = t.materialized(t.computed(node, 0)), t.constant(node, 1, "the slope")
    slopes = broadcast_constant(slope, x)
    if any(size not in (1, stored_size) for size, stored_size in zip(slopes.shape, x.tensor.shape, strict=True)):
        raise Refused(f"has the slope {listed(slope.shape)}, which does not broadcast to {listed(x.shape)}")
    constant = t.builder.constant(f"{node.outputs[0]}/slope", slopes)
    _bind_like(t, node, x, t.builder.emit("PRELU", [x.tensor, constant], x.tensor.shape, None, node.outputs[0]))


def broadcast_constant(values: Array, x: TensorView) -> Array:
    """Return a constant that broadcasts against x, in the axis order of x."""
    if values.ndim > len(x.shape):
        raise Refused(f"broadcasts {listed(x.shape)} to {values.ndim} axes, those of a constant; this is not supported")
    padded = values.reshape((1,) * (len(x.shape) - values.ndim) + values.shape)
    return np.ascontiguousarray(padded.transpose(x.order))


def operands(t: Translation, node: Node) -> tuple[list[Tensor], Order]:
    """Return the two inputs as tensors that broadcast, and their common axis order."""
    return broadcast_together(t, [real_operand(t, node, at) for at in (0, 1)], node.outputs[0])


def real_operand(t: Translation, node: Node, at: int) -> TensorView | Constant:
    """Return an operand as real numbers; unchanged if it has no scale."""
    value = t.value(node, at)
    return Constant(value.real_values) if isinstance(value, Constant) else t.dequantized(node.inputs[at], value)


def lower_scalar_operand(t: Translation, node: Node) -> bool:
    """Emit a table if a function between integers has one tensor and one number."""
    values = [t.value(node, at) for at in (0, 1)]
    computed = [at for at, value in enumerate(values) if not isinstance(value, Constant)]
    if len(computed) != 1:
        return False
    x, number = values[computed[0]], values[1 - computed[0]]
    if not isinstance(x, Dequantized) or not isinstance(number, Constant) or number.values.size != 1:
        return False
    return number.values.ndim <= len(x.integers.shape) and lower_to_table(t, node, computed[0])


def broadcast_together(t: Translation, parts: Sequence[TensorView | Constant], name: str) -> tuple[list[Tensor], Order]:
    """Return tensors that broadcast, and their common axis order.

    Constants become tensors with names that begin with `name`.
    """
    computed = [part for part in parts if isinstance(part, TensorView)]
    rank = max(len(part.shape) if isinstance(part, TensorView) else part.values.ndim for part in parts)
    if any(len(part.shape) != rank for part in computed):
        computed = [with_rank(t, part, rank) for part in computed]
    computed = t.aligned(computed)
    tensors, next_computed = [], iter(computed)
    for number, part in enumerate(parts):
        if isinstance(part, TensorView):
            tensors.append(next(next_computed).tensor)
        else:
            values, quant = broadcast_constant(part.values, computed[0]), _quantization(part)
            if values.dtype == np.uint8:
                values = (values.astype(np.int16) - LOWERED).astype(np.int8)
            tensors.append(t.builder.constant(f"{name}/operand{number}", values, *(quant or (None,))))
    return tensors, computed[0].order


def with_rank(t: Translation, x: TensorView, rank: int) -> TensorView:
    """Return the view with leading axes of size 1 added."""
    if len(x.shape) == rank:
        return x
    plain = t.plain(x)
    shape = (1,) * (rank - len(x.shape)) + x.shape
    return TensorView.of(t.builder.reshape(plain.tensor, shape, name=f"{plain.tensor.name}/axes"), plain_order(rank))


def _binary(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        if lower_scalar_operand(t, node) or _between_integers(t, node, op):
            return
        tensors, order = operands(t, node)
        out = t.destination(node, integers=False)
        assert out is not None
        method = getattr(t.builder, op.lower(), None)
        if method is not None:
            result = method(*tensors, activation=out.activation, name=out.name)
        else:
            result = _plain_binary(t, op, tensors, out.name, out.activation)
        t.finish(out, TensorView.of(result, order))

    return translate


def _between_integers(t: Translation, node: Node, op: str) -> bool:
    """Emit a sum or product between integers; return whether exact multipliers exist."""
    if op not in ("ADD", "SUB", "MUL"):
        return False
    values = [t.value(node, at) for at in (0, 1)]
    parts = [
        value.integers if isinstance(value, Dequantized) else value
        for value in values
        if not isinstance(value, TensorView)
    ]
    out = t.destination(node, integers=True)
    return out is not None and len(parts) == 2 and emit_integer_pair(t, op, parts, out)


def emit_integer_pair(
    t: Translation, op: str, parts: Sequence[TensorView | Constant], out: Out, lowered: int | None = None
) -> bool:
    """Append the sum or product of two integer tensors; return whether exact multipliers exist.

    Otherwise nothing is appended. lowered: as in `stages.ir.arithmetic.pairs.Pair`.
    """
    quants = [_quantization(part) for part in parts]
    if any(quant is None for quant in quants) or out.quant is None:
        return False
    first, second = (quant for quant in quants if quant is not None)
    pair = Pair(op.lower(), first, second, out.quant, *out.bounds, lowered)
    if isinstance(parts[0], TensorView) and parts[0] == parts[1]:
        _emit_pair_with_itself(t, parts[0], pair, out)
        return True
    if nearest_multipliers(pair) is None and exact_halves(pair) is None:
        return False
    tensors, order = broadcast_together(t, parts, out.name)
    result = getattr(t.builder, op.lower())(*tensors, activation=out.activation, out=out.quant, name=out.name)
    t.rule(lowered=lowered)
    t.finish(out, TensorView.of(result, order))
    return True


def _emit_pair_with_itself(t: Translation, x: TensorView, pair: Pair, out: Out) -> None:
    """Append the sum or product of a tensor with itself, as a table."""
    result = t.builder.quantize(x.tensor, "int8", pair.out, name=out.name)
    numbers = np.arange(-128, 128, dtype=np.int64)
    t.rule(table=[int(value) for value in pair.expected(numbers, numbers)], function=pair.op)
    t.finish(out, TensorView(result, x.base, x.shape, x.order))


def _quantization(part: TensorView | Constant) -> tuple[float, int] | None:
    """Return scale and int8 zero point of integers with one of each, else None."""
    if isinstance(part, TensorView):
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


def _variadic(op: str, *, mean: bool = False) -> Translator:
    """Return the translator of Max, Min, Sum or Mean of any number of tensors."""

    def translate(t: Translation, node: Node) -> None:
        if len(node.inputs) == 2 and not mean and lower_scalar_operand(t, node):
            return
        parts = [real_operand(t, node, at) for at in range(len(node.inputs))]
        tensors, order = broadcast_together(t, parts, node.outputs[0])
        result, name = tensors[0], node.outputs[0]
        for tensor in tensors[1:]:
            result = (
                t.builder.add(result, tensor, name=name)
                if op == "ADD"
                else _plain_binary(t, op, [result, tensor], name)
            )
        if mean:
            result = t.builder.mul(
                result, t.builder.constant(f"{name}/share", np.array([1 / len(tensors)], np.float32))
            )
        t.bind(name, TensorView.of(result, order))

    return translate


def power(t: Translation, node: Node) -> None:
    """Translate Pow; exponents 2 and 0.5 become SQUARE and SQRT."""
    if lower_scalar_operand(t, node):
        return
    exponent = t.value(node, 1)
    number = (
        float(exponent.real_values.reshape(-1)[0])
        if isinstance(exponent, Constant) and exponent.values.size == 1
        else None
    )
    if number in (2.0, 0.5) and isinstance(exponent, Constant) and not exponent.values.ndim:
        _unary("SQUARE" if number == 2.0 else "SQRT")(t, node)
        return
    parts = [real_operand(t, node, at) for at in (0, 1)]
    parts = [Constant(part.real_values.astype(np.float32)) if isinstance(part, Constant) else part for part in parts]
    tensors, order = broadcast_together(t, parts, node.outputs[0])
    t.bind(node.outputs[0], TensorView.of(_plain_binary(t, "POW", tensors, node.outputs[0]), order))


def concat(t: Translation, node: Node) -> None:
    """Translate Concat, also with constants; between integers each part is rescaled."""
    if _concat_between_integers(t, node):
        return
    values = [t.value(node, position) for position in range(len(node.inputs))]
    if all(isinstance(value, TensorView) and value.tensor.scale for value in values):
        parts = [value for value in values if isinstance(value, TensorView)]
        if len({(part.tensor.scale[0], part.tensor.zero_point[0]) for part in parts}) > 1:
            raise Refused("joins integers of different scales or zero points; they must be equal")
        tensors, order, axis = concat_inputs(t, node, list(parts))
        result = t.builder.concatenation(tensors, order.index(axis), name=node.outputs[0])
        t.bind(node.outputs[0], TensorView.of(result, order))
        return
    tensors, order, axis = concat_inputs(
        t,
        node,
        [None if isinstance(v, Constant) else t.dequantized(n, v) for n, v in zip(node.inputs, values, strict=True)],
    )
    result = t.builder.concatenation(tensors, order.index(axis), name=node.outputs[0])
    t.bind(node.outputs[0], TensorView.of(result, order))


def _concat_between_integers(t: Translation, node: Node) -> bool:
    values = [t.value(node, position) for position in range(len(node.inputs))]
    out = t.destination(node, integers=True)
    if out is None or out.activation != "none" or not all(isinstance(value, Dequantized) for value in values):
        return False
    concat_integers(t, node, [value.integers for value in values if isinstance(value, Dequantized)], out)
    return True


def concat_integers(t: Translation, node: Node, parts: Sequence[TensorView], out: Out) -> None:
    """Append a concatenation of integers; parts with another scale go through a table."""
    assert out.quant is not None
    rescaled = [requantized(t, part, out.quant, f"{out.name}/part{at}") for at, part in enumerate(parts)]
    tensors, order, axis = concat_inputs(t, node, list(rescaled))
    result = t.builder.concatenation(tensors, order.index(axis), name=out.name)
    t.finish(out, TensorView.of(result, order))


def concat_inputs(t: Translation, node: Node, parts: list[TensorView | None]) -> tuple[list[Tensor], Order, int]:
    """Return the inputs of a Concat in one axis order, this order, and the ONNX axis.

    parts: None for a constant.
    """
    computed = t.aligned([part for part in parts if part is not None])
    order, next_computed = computed[0].order, iter(computed)
    axis = axis_in(int(node.attributes.get("axis", 1)), len(order))
    tensors = []
    for position, part in enumerate(parts):
        if part is not None:
            tensors.append(next(next_computed).tensor)
            continue
        stored = t.constant(node, position, "a part")
        if stored.ndim != len(order):
            raise Refused(f"joins a constant {listed(stored.shape)} to tensors with {len(order)} axes; both must agree")
        ordered = np.ascontiguousarray(stored.transpose(order))
        tensors.append(t.builder.constant(f"{node.outputs[0]}/part{position}", ordered))
    return tensors, order, axis


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
    "Max": _variadic("MAXIMUM"),
    "Mean": _variadic("ADD", mean=True),
    "Min": _variadic("MINIMUM"),
    "Mul": _binary("MUL"),
    "Neg": _unary("NEG", "NegOptions"),
    "PRelu": prelu,
    "Pow": power,
    "Relu": _unary("RELU"),
    "Round": _unary("ROUND"),
    "Sigmoid": _unary("LOGISTIC"),
    "Sin": _unary("SIN"),
    "Sqrt": _unary("SQRT"),
    "Sub": _binary("SUB"),
    "Sum": _variadic("ADD"),
    "Tanh": _unary("TANH"),
}
