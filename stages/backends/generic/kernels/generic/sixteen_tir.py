"""TIR of layers on int16 activations."""

from collections.abc import Callable, Sequence
from typing import Any

from stages.backends.generic.kernels.generic.parameters import CONV16, DENSE16
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.addition import rescaled_sum
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import (
    clamp,
    divide_by_pot,
    int64,
    maximum,
    mean,
    output,
    requantize,
    select,
    widen,
)
from stages.backends.kernels.tir.strides import Axis, broadcast_strides, logical_strides, offset, walk
from stages.backends.kernels.tir.window import inside, padded, taps
from stages.ir.graph import LayerView
from stages.support.lazy import T, tirx

Expr = Any  # a TIR expression or a Python int
_BIGGEST = 65536.0  # beyond every 16-bit value


def conv16(view: LayerView, depth: int, units: int) -> Lowering:
    """Return the loop over images around the block of one.

    Groups have `depth` input and `units` output channels.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    kernel, (batch, height, width, count) = tuple(op.kernel), y.shape

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width), ("o", count)) as (oy, ox, o):
            store(b.acc, b.bias[o], 0)
            with loop(("ky", kernel[0]), ("kx", kernel[1]), ("k", depth)) as (ky, kx, k):
                channel = (o if units == 1 else T.truncdiv(o, units)) * depth + k
                value = padded(op, x.shape[1:3], (oy, ox), (ky, kx), lambda iy, ix: widen(b.x[iy, ix, channel]), 0)
                product = value * widen(b.w[o, (ky * kernel[1] + kx) * depth + k])
                store(b.acc, b.acc[0] + int64(product), 0)
            half = T.shift_left(T.int64(1), int64(14 - b.scales[o, 1]))
            scaled = T.shift_right(b.acc[0] * int64(b.scales[o, 0]) + half, int64(15 - b.scales[o, 1]))
            store(b.y, T.Cast("int16", _clamp64(scaled, op.act_min, op.act_max)), oy, ox, o)

    rows = (count, kernel[0] * kernel[1] * depth)
    constants = (
        Operand("w", rows, "int8"),
        Operand("bias", (count,), "int64"),
        Operand("scales", (count, 2), "int32"),
        Operand("conv", CONV16.shape, "int32"),
    )
    operands = (
        Operand("x", x.shape[1:], "int16"),
        *constants,
        Operand("y", y.shape[1:], "int16", "w"),
        Operand("acc", (1,), "int64", "rw"),
    )
    image = Block("image", operands, meaning, "fl_conv16", lambda b: [b.x, b.w, b.bias, b.scales, b.y, b.conv])
    with Function(op.op) as f:
        source = f.input(0, x.shape, "int16")
        buffers = {c.name: f.constant("weights" if c.name == "w" else c.name, c.shape, c.dtype) for c in constants}
        out = f.output(0, y.shape, "int16")
        acc = f.scratch("acc", (1,), "int64")
        with f.loop(("n", batch)) as (n,):
            f.place(image, x=(source, n, 0, 0, 0), y=(out, n, 0, 0, 0), acc=acc, **buffers)
    return f.lowering()


def fully_connected16(view: LayerView) -> Lowering:
    """Return the layer, one row after the other."""
    op = view.op

    def meaning(b: Any) -> None:
        with loop(("j", op.units)) as j:
            store(b.acc, b.bias[j], 0)
            with loop(("k", op.depth)) as k:
                store(b.acc, b.acc[0] + int64(widen(b.x[k]) * widen(b.w[j, k])), 0)
            store(b.product, T.Cast("float64", b.acc[0]) * b.real[j], 0)
            bounded = T.max(T.min(b.product[0], T.float64(2.0**31 - 1)), T.float64(-(2.0**31)))
            store(b.product, bounded, 0)
            store(b.y, T.Cast("int16", clamp(_nearest(b.product[0], "float64"), op.act_min, op.act_max)), j)

    constants = (
        Operand("w", (op.units, op.depth), "int8"),
        Operand("bias", (op.units,), "int64"),
        Operand("real", (op.units,), "float64"),
        Operand("dense", DENSE16.shape, "int32"),
    )
    operands = (
        Operand("x", (op.depth,), "int16"),
        *constants,
        Operand("y", (op.units,), "int16", "w"),
        Operand("acc", (1,), "int64", "rw"),
        Operand("product", (1,), "float64", "rw"),
    )
    row = Block("row", operands, meaning, "fl_dense16", lambda b: [b.x, b.w, b.bias, b.real, b.y, b.dense])
    with Function("fully_connected") as f:
        source = f.input(0, (op.batch, op.depth), "int16")
        buffers = {c.name: f.constant("weights" if c.name == "w" else c.name, c.shape, c.dtype) for c in constants}
        out = f.output(0, (op.batch, op.units), "int16")
        cells = {"acc": f.scratch("acc", (1,), "int64"), "product": f.scratch("product", (1,), "float64")}
        with f.loop(("n", op.batch)) as (n,):
            f.place(row, x=(source, n, 0), y=(out, n, 0), **buffers, **cells)
    return f.lowering()


def elementwise16(view: LayerView) -> Lowering:
    """Return one block of loops over all elements."""
    return elements(view, lambda x, b: _VALUES[view.op.op](view, x), ())


def elements(view: LayerView, value: Callable[[Sequence[Expr], Any], Expr], constants: tuple[Operand, ...]) -> Lowering:
    """Return y = value(elements, operands) over the inputs' elements, with constants by name."""
    op, out = view.op, view.outputs[0]
    axes = walk(out.shape, logical_strides(out), *(broadcast_strides(x, out.shape) for x in view.inputs))
    names = [f"x{number}" for number in range(len(view.inputs))]

    def meaning(b: Any) -> None:
        with loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(axes))) as variables:
            at = variables if len(axes) > 1 else (variables,)
            elements = [getattr(b, name)[offset(at, axes, 1 + k)] for k, name in enumerate(names)]
            store(b.y, value(elements, b), offset(at, axes, 0))

    operands = tuple(Operand(name, (x.elements,), x.dtype) for name, x in zip(names, view.inputs, strict=True))
    block = Block("elements", (*operands, *constants, Operand("y", (out.elements,), out.dtype, "w")), meaning)
    with Function(op.op) as f:
        inputs = {name: f.input(k, (view.inputs[k].elements,), view.inputs[k].dtype) for k, name in enumerate(names)}
        buffers = {constant.name: f.constant(constant.name, constant.shape, constant.dtype) for constant in constants}
        f.place(block, **inputs, **buffers, y=f.output(0, (out.elements,), out.dtype))
    return f.lowering()


def _mul(view: LayerView, x: Sequence[Expr]) -> Expr:
    product = widen(x[0]) * widen(x[1])
    return output(view, requantize(product, view.op.output_multiplier, view.op.output_shift, view.op.rounding))


def _requantize(view: LayerView, x: Sequence[Expr]) -> Expr:
    op = view.op
    return output(view, requantize(widen(x[0]) - op.input_zero_point, op.multiplier, op.shift, op.rounding))


def _quantize(view: LayerView, x: Sequence[Expr]) -> Expr:
    ratio = x[0] / T.float32(view.op.scale)
    above = tirx.Select(ratio > T.float32(-_BIGGEST), ratio, T.float32(-_BIGGEST))
    return output(view, _nearest(tirx.Select(above < T.float32(_BIGGEST), above, T.float32(_BIGGEST)), "float32"))


def _dequantize(view: LayerView, x: Sequence[Expr]) -> Expr:
    return T.float32(view.op.scale) * T.Cast("float32", widen(x[0]) - view.op.input_zero_point)


def _sum(view: LayerView, x: Sequence[Expr]) -> Expr:
    return output(view, rescaled_sum(view.op, x))


_VALUES: dict[str, Callable[[LayerView, Sequence[Expr]], Expr]] = {
    "add": _sum,
    "sub": _sum,
    "mul": _mul,
    "requantize": _requantize,
    "quantize": _quantize,
    "dequantize": _dequantize,
}


def interpolated16(view: LayerView) -> Lowering:
    """Return the formula of `stages.ir.operators.interpolated.Interpolated`."""
    op = view.op

    def value(x: Sequence[Expr], b: Any) -> Expr:
        scaled = T.shift_right(widen(x[0]) * op.multiplier + (1 << op.shift >> 1), op.shift)
        size = T.max(scaled, -scaled)
        entry = T.min(T.shift_right(size, op.bits), 254)
        between = T.bitwise_and(size, (1 << op.bits) - 1) * (b.table[entry + 1] - b.table[entry])
        magnitude = select(T.shift_right(size, op.bits) >= 255, op.most, b.table[entry] * (1 << op.bits) + between)
        if op.function == "logistic":
            signed = T.shift_right(select(scaled >= 0, magnitude + (1 << 9), (1 << 25) + (1 << 9) - 1 - magnitude), 10)
        else:
            above, below = magnitude + ((1 << 7) - (1 << 23)), (1 << 23) + (1 << 7) - 1 - magnitude
            signed = T.shift_right(select(scaled >= 0, above, below), 8)
        return T.Cast("int16", signed)

    return elements(view, value, (Operand("table", (256,), "int32"),))


def softmax16(view: LayerView) -> Lowering:
    """Return the formula of `stages.ir.operators.interpolated.WideSoftmax`, a row at a time."""
    op, x = view.op, view.inputs[0]
    count = x.shape[-1]

    def looked_up(table: Any, value: Expr) -> Expr:
        at = clamp(value, -(1 << 15), (1 << 15) - 1)
        entry = T.shift_right(at, 7) + 256
        line = (table[entry + 1] - table[entry]) * T.bitwise_and(at, 127)
        return table[entry] + T.shift_right(line + 64, 7)

    def meaning(b: Any) -> None:
        store(b.top, -(1 << 15), 0)
        with loop(("i", count)) as i:
            store(b.top, maximum(widen(b.x[i]), b.top[0]), 0)
        store(b.total, 0, 0)
        with loop(("i", count)) as i:
            scaled = requantize(widen(b.x[i]) - b.top[0], op.multiplier, op.shift, "double")
            store(b.powers, looked_up(b.exp, scaled + ((1 << 15) - 1)), i)
            store(b.total, b.total[0] + b.powers[i], 0)
        store(b.zeros, 0, 0)
        with loop(("bit", 32)) as bit:
            below = int64(b.total[0]) < T.shift_left(T.int64(1), int64(bit))
            store(b.zeros, b.zeros[0] + T.Cast("int32", below), 0)
        normal = T.shift_right(T.shift_left(b.total[0], b.zeros[0] - 1) + (1 << 13), 14)
        store(b.factor, looked_up(b.reciprocal, normal - ((1 << 15) + (1 << 16))), 0)
        with loop(("i", count)) as i:
            half = T.shift_left(T.int32(1), 30 - b.zeros[0])
            value = T.shift_right(b.powers[i] * b.factor[0] + half, 31 - b.zeros[0])
            store(b.y, T.Cast("int16", clamp(value, 0, (1 << 15) - 1)), i)

    tables = tuple(Operand(name, (513,), "int32") for name in ("exp", "reciprocal"))
    cells = tuple(accumulator(name) for name in ("top", "total", "zeros", "factor"))
    ends = Operand("x", (count,), "int16"), Operand("y", (count,), "int16", "w")
    row = Block("row", (*ends, *tables, Operand("powers", (count,), "int32", "rw"), *cells), meaning)
    with Function("softmax") as f:
        rows = (x.elements // count, count)
        source, buffers = f.input(0, rows, "int16"), {c.name: f.constant(c.name, c.shape, c.dtype) for c in tables}
        out = f.output(0, rows, "int16")
        scratch = {cell.name: f.scratch(cell.name, (1,), "int32") for cell in cells}
        scratch["powers"] = f.scratch("powers", (count,), "int32")
        with f.loop(("n", rows[0])) as (n,):
            f.place(row, x=(source, n, 0), y=(out, n, 0), **buffers, **scratch)
    return f.lowering()


def pool16(view: LayerView) -> Lowering:
    """Return one block per image."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    is_max = op.is_max
    batch, height, width, channels = y.shape
    lowest = T.int32(-(1 << 15))

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width), ("c", channels)) as (oy, ox, c):
            store(b.acc, lowest if is_max else 0, 0)
            store(b.count, 0, 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                iy, ix = taps(op, (oy, ox), (ky, kx))
                within = inside(iy, x.shape[1], ix, x.shape[2])
                value = select(within, widen(b.x[iy, ix, c]), lowest if is_max else 0)
                store(b.acc, maximum(value, b.acc[0]) if is_max else b.acc[0] + value, 0)
                store(b.count, b.count[0] + T.Cast("int32", within), 0)
            result = b.acc[0] if is_max else mean(b.acc[0], b.count[0])
            if (op.act_min, op.act_max) != (-(1 << 15), (1 << 15) - 1):  # else every element and every mean is within
                result = clamp(result, op.act_min, op.act_max)
            store(b.y, T.Cast("int16", result), oy, ox, c)

    shapes = Operand("x", x.shape[1:], "int16"), Operand("y", y.shape[1:], "int16", "w")
    image = Block("image", (*shapes, accumulator(), accumulator("count")), meaning)
    with Function(op.op) as f:
        source, out = f.input(0, x.shape, "int16"), f.output(0, y.shape, "int16")
        cells = {name: f.scratch(name, (1,), "int32") for name in ("acc", "count")}
        with f.loop(("n", batch)) as (n,):
            f.place(image, x=(source, n, 0, 0, 0), y=(out, n, 0, 0, 0), **cells)
    return f.lowering()


def mean16(view: LayerView, kept: Sequence[Axis], summed: Sequence[Axis]) -> Lowering:
    """Return MEAN. Strides of `kept` axes are of (output, input), of `summed` axes of (input,)."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]

    def meaning(b: Any) -> None:
        with loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(kept))) as variables:
            at = variables if len(kept) > 1 else (variables,)
            store(b.acc, 0, 0)
            with loop(*((f"j{depth}", axis.extent) for depth, axis in enumerate(summed))) as inner:
                places = inner if len(summed) > 1 else (inner,)
                place = offset(at, kept, 1) + offset(places, summed, 0)
                store(b.acc, b.acc[0] + widen(b.x[place]), 0)
            store(b.y, output(view, requantize(b.acc[0], op.multiplier, op.shift, op.rounding)), offset(at, kept, 0))

    operands = (Operand("x", (x.elements,), "int16"), Operand("y", (y.elements,), "int16", "w"), accumulator())
    block = Block("means", operands, meaning)
    with Function("mean") as f:
        source, out = f.input(0, (x.elements,), "int16"), f.output(0, (y.elements,), "int16")
        f.place(block, x=source, y=out, acc=f.scratch("acc", (1,), "int32"))
    return f.lowering()


def _nearest(value: Expr, dtype: str) -> Expr:
    """Return the nearest integer to a float within int32, halves away from zero."""
    integer, half = T.Cast("int32", value), tirx.const(0.5, dtype)
    rest = value - T.Cast(dtype, integer)
    return integer + T.Cast("int32", rest >= half) - T.Cast("int32", rest <= -half)


def _clamp64(value: Expr, low: int, high: int) -> Expr:
    return T.min(T.max(value, T.int64(low)), T.int64(high))


def wide_sqrt(view: LayerView) -> Lowering:
    """Return the formula of `stages.ir.operators.wide_sqrt.WideSqrt`.

    The conversion to int32 truncates.
    """
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        real = T.Cast("float32", T.max(widen(x[0]), 0)) * T.float32(op.input_scale)
        root = T.sqrt(real) / T.float32(op.output_scale)
        return output(view, T.Cast("int32", tirx.Select(root < T.float32(_BIGGEST), root, T.float32(_BIGGEST))))

    return elements(view, value, ())


def functions16(view: LayerView) -> Lowering:
    """Return one block of loops over all elements, with the formula of the operator."""
    constants = (Operand("table", (513,), "int32"),) if view.has("table") else ()
    return elements(view, lambda x, b: _FUNCTIONS[view.op.op](view, x, b), constants)


def _lines(view: LayerView, x: Sequence[Expr], b: Any) -> Expr:
    value = widen(x[0])
    entry = 256 + T.shift_right(value, T.int32(7))
    slope = widen(T.Cast("int16", b.table[entry + 1] - b.table[entry]))
    risen = slope * T.bitwise_and(value, T.int32(127)) + 64
    return T.Cast("int16", b.table[entry] + T.shift_right(risen, T.int32(7)))


def _leaky(view: LayerView, x: Sequence[Expr], b: Any) -> Expr:
    op, value = view.op, widen(x[0])
    above = requantize(value, op.multiplier, op.shift, "double")
    below = op.sign * requantize(value, op.slope, op.slope_shift, "double")
    return output(view, select(value >= 0, above, below))


def _power_of_two_sum(view: LayerView, x: Sequence[Expr], b: Any) -> Expr:
    first, second = (
        T.Cast("int32", divide_by_pot(int64(widen(element)), shift))
        for element, shift in zip(x, view.op.shifts, strict=True)
    )
    return output(view, first + second if view.op.named == "add" else first - second)


_FUNCTIONS: dict[str, Callable[[LayerView, Sequence[Expr], Any], Expr]] = {
    "lines": _lines,
    "leaky": _leaky,
    "power_of_two_add": _power_of_two_sum,
    "power_of_two_sub": _power_of_two_sum,
}
