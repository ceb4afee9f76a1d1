"""TIR of reductions and L2_NORMALIZATION."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
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
from stages.backends.kernels.tir.strides import Axis, offset
from stages.ir.graph import LayerView
from stages.ir.operators.reductions import ReduceExtremum, ReduceProd


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


def l2_normalization(view: LayerView) -> Lowering:
    """Lower L2_NORMALIZATION: each row divided by its length."""
    return along_rows(view, _l2_row(view))


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
