"""TIR of functions and sums of int16 activations."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.sixteen_tir import elements
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.fixed_point import divide_by_pot, int64, output, requantize, select, widen
from stages.ir.graph import LayerView

Expr = Any  # a TIR expression or a Python int


def functions16(view: LayerView) -> Lowering:
    """Return one block of loops over all elements, with the formula of the operator."""
    constants = (Operand("table", (513,), "int32"),) if view.has("table") else ()
    return elements(view, lambda x, b: _VALUES[view.op.op](view, x, b), constants)


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


def _sum(view: LayerView, x: Sequence[Expr], b: Any) -> Expr:
    first, second = (
        T.Cast("int32", divide_by_pot(int64(widen(element)), shift))
        for element, shift in zip(x, view.op.shifts, strict=True)
    )
    return output(view, first + second if view.op.named == "add" else first - second)


_VALUES: dict[str, Callable[[LayerView, Sequence[Expr], Any], Expr]] = {
    "lines": _lines,
    "leaky": _leaky,
    "power_of_two_add": _sum,
    "power_of_two_sub": _sum,
}
