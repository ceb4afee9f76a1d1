"""Reductions, softmax and L2_NORMALIZATION."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops, Loops8
from stages.backends.generic.kernels.generic.parameters import MEAN, epilogue
from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.softmax import softmax
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import (
    clamp,
    divide_by_pot,
    high_mul,
    int64,
    maximum,
    output,
    requantize,
    select,
    widen,
)
from stages.backends.kernels.tir.last_axis import along_rows, leading_zeros, row_operands, row_steps, saturated
from stages.backends.kernels.tir.means import means
from stages.backends.kernels.tir.strides import Axis, logical_strides, offset, reduced_axes, two_axes, walk
from stages.backends.targets.spec import Target
from stages.ir.arithmetic.logarithm import (
    ALPHA_D,
    ALPHA_F,
    ALPHA_I,
    ALPHA_N,
    FOURTH_ROOT_OF_HALF,
    LN_2,
    POWER_BITS,
    QUARTER,
    ROOT_OF_HALF,
    SUM_BITS,
)
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.reductions import ReduceExtremum, ReduceProd
from stages.support.lazy import T


class Mean(Kernel):
    """MEAN, a run of means at a time.

    Any layouts, and any axes that make at most two runs in memory.
    """

    name = "generic.mean"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    sources = ("mean.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        runs = len(reduced_axes(view)[1])
        return not_eight_bit(view) or (
            f"axes of {runs} runs in memory; this kernel is for 2 or fewer" if runs > 2 else ""
        )

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        kept, (outer, inner) = reduced_axes(view)[0], two_axes(reduced_axes(view)[1])
        fields = {
            "x_step": kept[-1].strides[1],
            "extent0": outer.extent,
            "step0": outer.strides[0],
            "extent1": inner.extent,
            "step1": inner.strides[0],
            "offset": op.input_zero_point * op.count,
            "multiplier": op.multiplier,
            "shift": op.shift,
        }
        return {"fields": MEAN.of(fields | epilogue(op, op.rounding))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        kept, summed = reduced_axes(view)
        return means(view, kept, two_axes(summed), f"fl_mean_{SUFFIX[view.inputs[0].dtype]}", MEAN.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return counted costs: adjacent means, four at a time, 2.8 per element and 33 per mean.

        Other means cost 6 and 85, or 2.4 per element if the elements are adjacent.
        """
        (*_, run), summed = reduced_axes(view)
        count, inner = view.op.count, two_axes(summed)[1]
        fours = run.extent // 4 if run.strides[1] == 1 else 0
        single = (2.4 if inner.strides[0] == 1 else 6.0) * count + 85
        row = fours * 4 * (2.8 * count + 33) + (run.extent - fours * 4) * single
        return view.outputs[0].elements / run.extent * row + 60


class Reduce(Loops8):
    """Sum, product, maximum and minimum over any axes."""

    name = "generic.reduce"
    ops: ClassVar[frozenset[str]] = frozenset({"reduce_max", "reduce_min", "reduce_prod", "sum"})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return reduce(view, reduced_axes(view)[0], logical_axes(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 6 instructions per added or compared input, 20 per product, 30 per output."""
        element_cost = 20.0 if isinstance(view.op, ReduceProd) else 6.0
        return element_cost * view.inputs[0].elements + 30 * view.outputs[0].elements


class Softmax(Kernel):
    """SOFTMAX by rows: the maximum, the sum of exponentials from a table, the quotients."""

    name = "generic.softmax"
    estimate_error = 3
    ops: ClassVar[frozenset[str]] = frozenset({"softmax"})
    sources = ("softmax.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {"exp": view.constant("exp")}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return softmax(view, f"fl_softmax_{SUFFIX[view.inputs[0].dtype]}")

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 30 instructions per element, 300 per row."""
        elements = view.outputs[0].elements
        return 30.0 * elements + 300 * elements / view.outputs[0].shape[-1]


class SoftmaxTo16(Loops):
    """SOFTMAX of 8 bits to int16 by rows, as loops of plain TIR."""

    name = "generic.softmax_to_16"
    ops: ClassVar[frozenset[str]] = frozenset({"softmax"})
    element = 50.0
    row = 500

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        dtype = view.outputs[0].dtype
        return "" if dtype == "int16" else f"tensor {view.outputs[0].name} is {dtype}; this kernel is for int16"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return softmax(view)


class LogSoftmax(Loops8):
    """LOG_SOFTMAX by rows: maximum, sum of exponentials, its logarithm, differences."""

    name = "generic.log_softmax"
    ops: ClassVar[frozenset[str]] = frozenset({"log_softmax"})
    element = 35.0
    row = 900

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return log_softmax(view)


class L2Normalization(Kernel):
    """L2_NORMALIZATION by rows: the sum of squares, its inverse square root, the products."""

    name = "generic.l2_normalization"
    ops: ClassVar[frozenset[str]] = frozenset({"l2_normalization"})
    sources = ("l2_normalization.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Lower L2_NORMALIZATION: each row divided by its length."""
        return along_rows(view, _l2_row(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 35 instructions per element, 400 per row."""
        elements = view.outputs[0].elements
        return 35.0 * elements + 400 * elements / view.outputs[0].shape[-1]


def logical_axes(view: LayerView) -> list[Axis]:
    """Return the reduced axes, outermost first. Products depend on the order of their factors."""
    x = view.inputs[0]
    steps = logical_strides(x)
    axes = [Axis(x.shape[axis], (steps[axis],)) for axis in sorted(view.op.axes) if x.shape[axis] > 1]
    return axes or [Axis(1, (1,))]


KERNELS: tuple[type[Kernel], ...] = (L2Normalization, LogSoftmax, Mean, Reduce, Softmax, SoftmaxTo16)


def reduce(view: LayerView, kept: Sequence[Axis], reduced: Sequence[Axis]) -> Lowering:
    """Return the loops around a run of outputs, as `means`, without a micro-kernel.

    Strides of `reduced` are of (input,).
    """
    x, y = view.inputs[0], view.outputs[0]
    run = kept[-1]
    reach = (run.extent - 1) * run.strides[1] + sum((axis.extent - 1) * axis.strides[0] for axis in reduced) + 1
    begin, step, end = _reduction(view)

    def meaning(b: Any) -> None:
        with loop(("i", run.extent)) as i:
            store(b.acc, begin, 0)
            with loop(*((f"r{number}", axis.extent) for number, axis in enumerate(reduced))) as variables:
                at = variables if isinstance(variables, Sequence) else (variables,)
                element = widen(b.x[i * run.strides[1] + offset(at, reduced, 0)])
                first = at[0] == 0
                for variable in at[1:]:
                    first = T.And(first, variable == 0)
                store(b.acc, step(b.acc[0], element, first), 0)
            store(b.y, end(b.acc[0]), i)

    operands = (Operand("x", (reach,), x.dtype), Operand("y", (run.extent,), y.dtype, "w"), accumulator())
    with Function(view.op.op) as f:
        source, target = f.input(0, (x.elements,), x.dtype), f.output(0, (y.elements,), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(kept[:-1]))) as at:
            regions = {"x": (source, offset(at, kept, 1)), "y": (target, offset(at, kept, 0))}
            f.place(Block("run", operands, meaning), **regions, acc=acc)
    return f.lowering()


def _reduction(view: LayerView) -> tuple[Any, Callable[[Any, Any, Any], Any], Callable[[Any], Any]]:
    """Return the accumulator's start, its update (first or later element), and the output."""
    op, dtype = view.op, view.outputs[0].dtype

    def scaled(x: Any) -> Any:
        """Return the formula of `stages.ir.arithmetic.fixed_point.multiply_wide` for an int64."""
        reduced = min(op.multiplier + (1 << 15) >> 16, (1 << 15) - 1)
        product = x * T.int64(reduced) + T.int64(1 << 14 - op.shift)
        return T.Cast("int32", T.shift_right(product, T.int64(15 - op.shift)))

    def multiplied(total: Any, x: Any, first: Any) -> Any:
        value = x - op.input_zero_point
        return T.Select(first, value, scaled(int64(total) * int64(value)))

    if isinstance(op, ReduceExtremum):
        lowest, highest = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(1 << 15), (1 << 15) - 1)}[dtype]
        choose, begin = (T.max, lowest) if op.is_max else (T.min, highest)
        return begin, lambda total, x, first: choose(total, x), lambda total: T.Cast(dtype, total)
    if isinstance(op, ReduceProd):
        return 0, multiplied, lambda total: output(view, scaled(int64(total)))
    return (
        -op.input_zero_point * op.count,
        lambda total, x, first: total + x,
        lambda total: output(view, requantize(total, op.multiplier, op.shift, op.rounding)),
    )


def _l2_row(view: LayerView) -> Block:
    """Compute the formula of `stages.ir.operators.rows.L2Normalization` on one row.

    Its loop while n >= 2^29 runs at most once, as n < 2^31.
    """
    dtype, (count, x_step, y_step) = view.inputs[0].dtype, row_steps(view)
    zero_point = view.op.input_zero_point

    def meaning(b: Any) -> None:
        store(b.n, 0, 0)
        with loop(("i", count)) as i:
            d = widen(b.x[i * x_step]) - zero_point
            store(b.n, b.n[0] + d * d, 0)
        store(b.unit, T.Cast("int32", b.n[0] <= 1), 0)
        store(b.shift, 11 + T.Cast("int32", b.n[0] >= 1 << 29), 0)
        store(b.n, select(b.n[0] >= 1 << 29, T.truncdiv(b.n[0], 4), b.n[0]), 0)
        store(b.n, maximum(T.int32(2), b.n[0]), 0)  # below, `unit` decides
        leading_zeros(b.pairs, int64(b.n[0]))
        store(b.pairs, T.truncdiv(b.pairs[0] - 1, 2) - 1, 0)
        normal = T.shift_left(b.n[0], b.pairs[0] * 2)
        store(b.n, T.Cast("int32", divide_by_pot(int64(T.shift_right(normal, T.int32(1))), 1)), 0)
        store(b.r, T.int32(1 << 28), 0)
        with loop(("step", 5)):
            cube = saturated(high_mul(T.Cast("int32", high_mul(b.r[0], b.r[0])), b.r[0]) * T.int64(64))
            store(b.cube, cube, 0)
            change = high_mul(b.r[0], 3 << 27) - high_mul(b.n[0], b.cube[0])
            store(b.r, saturated(change * T.int64(8)), 0)
        store(b.shift, b.pairs[0] - b.shift[0], 0)
        multiplier = T.shift_left(T.Cast("int32", high_mul(b.r[0], 1518500250)), maximum(b.shift[0], T.int32(0)))
        store(b.r, select(b.unit[0] > 0, T.int32((1 << 31) - 1), multiplier), 0)
        store(b.shift, select(b.unit[0] > 0, 0, select(b.shift[0] < 0, b.shift[0], 0)), 0)
        with loop(("i", count)) as i:
            d = widen(b.x[i * x_step]) - zero_point
            if dtype == "uint8":
                value = clamp(requantize(d * 128, b.r[0], b.shift[0], "double") + 128, 0, 255)
            else:
                value = clamp(requantize(d, b.r[0], b.shift[0] + 7, "double"), -128, 127)
            store(b.y, T.Cast(dtype, value), i * y_step)

    cells = (accumulator(name) for name in ("n", "unit", "shift", "pairs", "r", "cube"))
    arguments = [count, x_step, y_step, zero_point]
    function = f"fl_l2_normalize_{SUFFIX[dtype]}"
    return Block("row", (*row_operands(view), *cells), meaning, function, lambda b: [b.x, b.y, *arguments])


_CELLS = ("top", "total", "zeros", "room", "r", "power", "q", "square", "half", "scale", "log")


def log_softmax(view: LayerView) -> Lowering:
    """Return the loops around the block of a row. A row's elements may be apart (NCHW)."""
    x, y = view.inputs[0], view.outputs[0]
    count, (x_step, y_step) = x.shape[-1], (logical_strides(tensor)[-1] for tensor in (x, y))
    lowest = -128 if x.dtype == "int8" else 0

    def meaning(b: Any) -> None:
        store(b.top, lowest, 0)
        with loop(("i", count)) as i:
            store(b.top, maximum(widen(b.x[i * x_step]), b.top[0]), 0)
        store(b.total, 0, 0)
        with loop(("i", count)) as i:
            store(b.total, b.total[0] + b.exp[b.top[0] - widen(b.x[i * x_step])], 0)
        _logarithm(b)
        with loop(("i", count)) as i:
            real = int64(b.difference[b.top[0] - widen(b.x[i * x_step])]) - int64(b.log[0])
            value = T.Cast("int32", divide_by_pot(real, 22)) + (lowest + 255)
            store(b.y, T.Cast(y.dtype, clamp(value, lowest, lowest + 255)), i * y_step)

    tables = {name: Operand(name, (256,), "int32") for name in ("exp", "difference")}
    source = Operand("x", ((count - 1) * x_step + 1,), x.dtype)
    target = Operand("y", ((count - 1) * y_step + 1,), y.dtype, "w")
    row = Block("row", (source, *tables.values(), target, *map(accumulator, _CELLS)), meaning)
    axes = walk(x.shape[:-1], logical_strides(y)[:-1], logical_strides(x)[:-1])
    with Function("log_softmax") as f:
        source_buffer = f.input(0, (x.elements,), x.dtype)
        others = {name: f.constant(name, operand.shape, operand.dtype) for name, operand in tables.items()}
        result = f.output(0, (y.elements,), y.dtype)
        others |= {name: f.scratch(name, (1,), "int32") for name in _CELLS}
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(axes))) as at:
            f.place(row, x=(source_buffer, offset(at, axes, 1)), y=(result, offset(at, axes, 0)), **others)
    return f.lowering()


def _logarithm(b: Any) -> None:
    """Compute log = ln(total), as in `stages.ir.arithmetic.logarithm`.

    Sums fit int64, stored values int32.
    """
    total = int64(b.total[0])
    _leading_zeros(b.zeros, total)
    _leading_zeros(b.room, high_mul(b.total[0], ROOT_OF_HALF))
    store(b.room, b.room[0] - 1, 0)
    first = high_mul(_saturated(total * _power_of_two(b.zeros[0] - 1)), ROOT_OF_HALF) * T.int64(2)
    second = total * _power_of_two(b.room[0])
    store(b.r, T.min(_saturated(first), _saturated(second)), 0)
    unit = 1 << 31 - POWER_BITS
    store(b.power, T.max((SUM_BITS - b.zeros[0]) * unit + QUARTER, (SUM_BITS - b.room[0]) * unit - QUARTER), 0)
    store(b.q, T.Cast("int32", (int64(b.r[0]) - T.int64(FOURTH_ROOT_OF_HALF)) * T.int64(2)), 0)
    store(b.square, T.Cast("int32", high_mul(b.q[0], b.q[0])), 0)
    middle = T.shift_right(int64(b.r[0]) + T.int64(FOURTH_ROOT_OF_HALF + 1), T.int64(1))
    inner = T.int64(ALPHA_I) + int64(b.q[0]) + high_mul(b.square[0], ALPHA_D)
    below = high_mul(T.Cast("int32", middle), T.Cast("int32", inner)) + high_mul(b.q[0], ALPHA_F)
    store(b.half, T.Cast("int32", T.shift_right(below + T.int64(1 << 31), T.int64(1))), 0)
    store(b.scale, T.Cast("int32", high_mul(b.half[0], -1010580540) + T.int64(1515870810)), 0)
    with loop(("step", 3)):
        error = T.int64(1 << 29) - high_mul(b.half[0], b.scale[0])
        store(b.scale, b.scale[0] + _saturated(high_mul(b.scale[0], T.Cast("int32", error)) * T.int64(4)), 0)
    store(b.scale, _saturated(int64(b.scale[0]) * T.int64(2)), 0)
    product = T.Cast("int32", high_mul(b.q[0], b.square[0]))
    above = high_mul(b.q[0], b.r[0]) + high_mul(product, ALPHA_N)
    quotient = high_mul(T.Cast("int32", divide_by_pot(above, POWER_BITS)), b.scale[0])
    store(b.log, _saturated((high_mul(b.power[0], LN_2) + quotient) * T.int64(2)), 0)


def _leading_zeros(count: Any, value: Any) -> None:
    """Count the leading zeros of an int64 expression in [0, 2^31) as 32 bits, into count[0]."""
    store(count, 0, 0)
    with loop(("bit", 32)) as bit:
        store(count, count[0] + T.Cast("int32", value < T.shift_left(T.int64(1), int64(bit))), 0)


def _power_of_two(exponent: Any) -> Any:
    return T.shift_left(T.int64(1), int64(exponent))


def _saturated(x: Any) -> Any:
    """Return an int64 expression, saturated to int32."""
    return T.Cast("int32", T.min(T.max(x, T.int64(-(1 << 31))), T.int64((1 << 31) - 1)))
