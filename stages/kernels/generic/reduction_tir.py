"""TIR of reductions, SOFTMAX and L2_NORMALIZATION."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.eight_bit import SUFFIX
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.kernels.tir.fixed_point import (
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
from stages.kernels.tir.strides import Axis, logical_strides, offset, walk

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def reduce(view: LayerView, kept: Sequence[Axis], reduced: Sequence[Axis]) -> Lowering:
    """The loops around a run of outputs, as `means`; no micro-kernel. Strides of `reduced` are of (input,)."""
    x, y = view.inputs[0], view.outputs[0]
    run = kept[-1]
    reach = (run.extent - 1) * run.strides[1] + sum((axis.extent - 1) * axis.strides[0] for axis in reduced) + 1
    begin, step, end = _reduction(view)

    def meaning(b: Any) -> None:
        with loop(("i", run.extent)) as i:
            store(b.acc, begin, 0)
            with loop(*((f"r{number}", axis.extent) for number, axis in enumerate(reduced))) as found:
                at = found if isinstance(found, Sequence) else (found,)
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
    """What an accumulator begins with; what it becomes by an element, the first or not; the output of it."""
    op, dtype = view.op, view.outputs[0].dtype

    def scaled(x: Any) -> Any:
        """The formula of `stages.arithmetic.fixed_point.multiply_wide` for an int64."""
        reduced = min(op.multiplier + (1 << 15) >> 16, (1 << 15) - 1)
        product = x * T.int64(reduced) + T.int64(1 << 14 - op.shift)
        return T.Cast("int32", T.shift_right(product, T.int64(15 - op.shift)))

    def multiplied(total: Any, x: Any, first: Any) -> Any:
        value = x - op.input_zero_point
        return T.Select(first, value, scaled(int64(total) * int64(value)))

    if op.op in ("reduce_max", "reduce_min"):
        lowest, highest = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(1 << 15), (1 << 15) - 1)}[dtype]
        choose, begin = (T.max, lowest) if op.op == "reduce_max" else (T.min, highest)
        return begin, lambda total, x, first: choose(total, x), lambda total: T.Cast(dtype, total)
    if op.op == "reduce_prod":
        return 0, multiplied, lambda total: output(view, scaled(int64(total)))
    return (
        -op.input_zero_point * op.count,
        lambda total, x, first: total + x,
        lambda total: output(view, requantize(total, op.multiplier, op.shift, op.rounding)),
    )


def softmax(view: LayerView) -> Lowering:
    return _rows(view, _softmax_row(view), ("exp", (256,), "int32"))


def l2_normalization(view: LayerView) -> Lowering:
    return _rows(view, _l2_row(view))


def _rows(view: LayerView, row: Block, *constants: tuple[str, tuple[int, ...], str]) -> Lowering:
    """The loops around the block of a row, whose elements may be apart (NCHW). One-element operands are scratch."""
    x, y = view.inputs[0], view.outputs[0]
    axes = walk(x.shape[:-1], logical_strides(y)[:-1], logical_strides(x)[:-1])
    with Function(view.op.op) as f:
        source = f.input(0, (x.elements,), x.dtype)
        others = {key: f.constant(key, shape, dtype) for key, shape, dtype in constants}
        target = f.output(0, (y.elements,), y.dtype)
        for operand in row.operands:
            if operand.access == "rw":
                others[operand.name] = f.scratch(operand.name, operand.shape, operand.dtype)
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(axes))) as at:
            f.place(row, x=(source, offset(at, axes, 1)), y=(target, offset(at, axes, 0)), **others)
    return f.lowering()


def _row_operands(view: LayerView) -> tuple[Operand, Operand]:
    """The last axis of the input and of the output."""
    x, y = view.inputs[0], view.outputs[0]
    count, x_step, y_step = _row_steps(view)
    return Operand("x", ((count - 1) * x_step + 1,), x.dtype), Operand("y", ((count - 1) * y_step + 1,), y.dtype, "w")


def _row_steps(view: LayerView) -> tuple[int, int, int]:
    """Elements of a row, and the steps between neighbours in the input and in the output."""
    x, y = view.inputs[0], view.outputs[0]
    return x.shape[-1], logical_strides(x)[-1], logical_strides(y)[-1]


def _leading_zeros(count: Any, value: Any) -> None:
    """Counts the leading zeros of an int64 expression in [0, 2^32), as of 32 bits, into count[0]."""
    store(count, 0, 0)
    with loop(("bit", 32)) as bit:
        below = value < T.shift_left(T.int64(1), int64(bit))
        store(count, count[0] + T.Cast("int32", below), 0)


def _softmax_row(view: LayerView) -> Block:
    """The formula of `stages.operators.rows.Softmax` on one row."""
    dtype, (count, x_step, y_step) = view.inputs[0].dtype, _row_steps(view)
    lowest = -128 if dtype == "int8" else 0

    def meaning(b: Any) -> None:
        store(b.top, lowest, 0)
        with loop(("i", count)) as i:
            store(b.top, maximum(widen(b.x[i * x_step]), b.top[0]), 0)
        store(b.total, 0, 0)
        with loop(("i", count)) as i, position("d", b.top[0] - widen(b.x[i * x_step])) as d:
            store(b.total, b.total[0] + T.Cast("int32", divide_by_pot(int64(b.exp[d]), 12)), 0)
        total = T.bitwise_and(int64(b.total[0]), T.int64(0xFFFFFFFF))
        _leading_zeros(b.zeros, total)
        store(b.half, T.Cast("int32", T.shift_right(T.shift_left(total, int64(b.zeros[0])), T.int64(1))), 0)
        store(b.scale, T.Cast("int32", high_mul(b.half[0], -1010580540) + T.int64(1515870810)), 0)
        with loop(("step", 3)):
            error = T.int64(1 << 29) - high_mul(b.half[0], b.scale[0])
            change = _saturated(high_mul(b.scale[0], error) * T.int64(4))
            store(b.scale, b.scale[0] + change, 0)
        store(b.scale, _saturated(int64(b.scale[0]) * T.int64(2)), 0)
        with loop(("i", count)) as i, position("d", b.top[0] - widen(b.x[i * x_step])) as d:
            shift = 35 - b.zeros[0]
            part = divide_by_pot(high_mul(b.scale[0], b.exp[d]), T.min(shift, 31))
            value = select(shift > 31, 0, T.Cast("int32", part))
            store(b.y, T.Cast(dtype, clamp(value + lowest, lowest, lowest + 255)), i * y_step)

    source, target = _row_operands(view)
    cells = (accumulator(name) for name in ("top", "total", "zeros", "half", "scale"))
    operands = (source, Operand("exp", (256,), "int32"), target, *cells)
    function = f"fl_softmax_{SUFFIX[dtype]}"
    return Block("row", operands, meaning, function, lambda b: [b.x, b.exp, b.y, count, x_step, y_step])


def _l2_row(view: LayerView) -> Block:
    """The formula of `stages.operators.rows.L2Normalization` on one row.

    Its loop while n >= 2^29 runs at most once, as n < 2^31.
    """
    dtype, (count, x_step, y_step) = view.inputs[0].dtype, _row_steps(view)
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
        _leading_zeros(b.pairs, int64(b.n[0]))
        store(b.pairs, T.truncdiv(b.pairs[0] - 1, 2) - 1, 0)
        normal = T.shift_left(b.n[0], b.pairs[0] * 2)
        store(b.n, T.Cast("int32", divide_by_pot(int64(T.shift_right(normal, T.int32(1))), 1)), 0)
        store(b.r, T.int32(1 << 28), 0)
        with loop(("step", 5)):
            cube = _saturated(high_mul(T.Cast("int32", high_mul(b.r[0], b.r[0])), b.r[0]) * T.int64(64))
            store(b.cube, cube, 0)
            change = high_mul(b.r[0], 3 << 27) - high_mul(b.n[0], b.cube[0])
            store(b.r, _saturated(change * T.int64(8)), 0)
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
    return Block("row", (*_row_operands(view), *cells), meaning, function, lambda b: [b.x, b.y, *arguments])


def _saturated(x: Any) -> Any:
    """An int64 expression as the nearest int32."""
    return T.Cast("int32", T.min(T.max(x, T.int64(-(1 << 31))), T.int64((1 << 31) - 1)))
