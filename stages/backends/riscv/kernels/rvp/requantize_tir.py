"""Requantization of rvp kernels in TIR, from packed multipliers and rounders."""

from typing import Any

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.tir import fixed_point
from stages.backends.kernels.tir.fixed_point import int64, select
from stages.backends.riscv.kernels.rvp.packing import EXACT_SHIFT
from stages.ir.graph import LayerView
from stages.ir.layers import ROUNDINGS, Rounding
from stages.support.lazy import T

Expr = Any  # a TIR expression or a Python int


def requantize(acc: Expr, multiplier: Expr, rounder: Expr, mark: Expr, rounding: Rounding) -> Expr:
    """Scale the accumulator by multiplier and rounder, int32.

    A negative `mark` selects the wide rounding.
    """
    product = int64(acc) * int64(multiplier)
    once = ROUNDINGS[rounding].is_single
    t = T.shift_right(product, T.int64(32)) if once else T.shift_right(product + T.int64(1 << 30), T.int64(31))
    short = T.shift_right(t * int64(rounder) + T.int64(1 << 31), T.int64(32))
    lowered = t if once else t - T.Cast("int64", t < T.int64(0))
    unmarked = int64(T.bitwise_and(rounder, 0x7FFFFFFF))
    wide = T.shift_right(lowered * unmarked + T.int64(1 << 30), T.int64(31))
    return T.Cast("int32", select(mark < 0, wide, short))


def requantize_once(view: LayerView, acc: Expr, multiplier: Expr, zero_point: Expr) -> Expr:
    """Scale the accumulator by one multiplication; `zero_point` (int8) is the channel's."""
    scaled = T.shift_right(int64(acc) * int64(multiplier) + T.int64(1 << 31), T.int64(32))
    offset = INT8_OFFSET[view.outputs[0].dtype]
    return T.Cast("int32", scaled) + zero_point + (offset - view.op.output_zero_point)


def half_of(word: Expr, number: Expr) -> Expr:
    """Return the lower (0) or upper (1) 16 bits of an int32, as int32."""
    return T.shift_right(T.shift_left(word, 16 - 16 * number), 16)


def requantize_any(acc: Expr, multiplier: Expr, rounder: Expr, mark: Expr, exact_mark: Expr) -> Expr:
    """Scale with two roundings. If `exact_mark` is negative, `rounder` is the shift."""
    shift = T.bitwise_and(rounder, 127) - EXACT_SHIFT
    exact = fixed_point.requantize(acc, multiplier, shift, "double")
    return select(exact_mark < 0, exact, requantize(acc, multiplier, rounder, mark, "double"))
