"""Requantization as exact TIR expressions: all products and roundings are 64-bit.

The arithmetic is in `stages.ir.layers.rounding`. Two identities keep the expressions short, for any int32 x and
any m in [0, 2^31):

  SaturatingRoundingDoublingHighMul(x, m) = (x * m + 2^30) >> 31
      The original adds 2^30, or 1 - 2^30 to a negative product, and divides by 2^31 towards zero. For x * m = -q with
      q > 0 that is -floor((q + 2^30 - 1) / 2^31), which is floor((2^30 - q) / 2^31).
  RoundingDivideByPOT(x, s) = (x + (2^s >> 1) - (x < 0 and s > 0)) >> s
      Halves go away from zero: a negative x is lowered by one before the rounding towards plus infinity.

`shift` may be a Python int or, per channel, a TIR expression.
"""

from typing import Any

from stages.ir.graph import LayerView
from stages.ir.layers import Rounding
from stages.support.lazy import T, tirx

Expr = Any  # a TIR expression or a Python int


def int64(value: Expr) -> Expr:
    """Return `value` as an int64 expression."""
    return T.int64(value) if isinstance(value, int) else T.Cast("int64", value)


def high_mul(x: Expr, multiplier: Expr) -> Expr:
    """Return SaturatingRoundingDoublingHighMul of int32 `x`, as int64 in int32's range.

    The multiplier is in [0, 2^31).
    """
    return T.shift_right(int64(x) * int64(multiplier) + T.int64(1 << 30), T.int64(31))


def divide_by_pot(x: Expr, shift: Expr) -> Expr:
    """Return RoundingDivideByPOT of an int64 expression. `shift` is in [0, 31]."""
    if isinstance(shift, int):
        if shift == 0:
            return x
        return T.shift_right(x + T.int64(1 << (shift - 1)) - T.Cast("int64", x < T.int64(0)), T.int64(shift))
    half = T.shift_right(T.shift_left(T.int64(1), int64(shift)), T.int64(1))
    lowered = T.Cast("int64", x < T.int64(0)) * int64(T.min(shift, 1))
    return T.shift_right(x + half - lowered, int64(shift))


def requantize(x: Expr, multiplier: Expr, shift: Expr, rounding: Rounding) -> Expr:
    """Return M(x, multiplier, shift) of `stages.ir.layers.rounding` for int32 `x`, as int32.

    `shift` is in [-31, 30]. A left shift that leaves int32 is undefined, as in the reference.
    """
    if rounding == "single":
        if isinstance(shift, int):
            product = int64(x) * int64(multiplier) + T.int64(1 << (30 - shift))
            return T.Cast("int32", T.shift_right(product, T.int64(31 - shift)))
        product = int64(x) * int64(multiplier) + T.shift_left(T.int64(1), int64(30 - shift))
        return T.Cast("int32", T.shift_right(product, int64(31 - shift)))
    if isinstance(shift, int):
        shifted = x * (1 << shift) if shift > 0 else x
        return T.Cast("int32", divide_by_pot(high_mul(shifted, multiplier), max(-shift, 0)))
    shifted = x * T.shift_left(T.int32(1), T.max(shift, 0))
    return T.Cast("int32", divide_by_pot(high_mul(shifted, multiplier), T.max(0 - shift, 0)))


def clamp(x: Expr, low: int, high: int) -> Expr:
    """Return min(max(x, low), high)."""
    return T.min(T.max(x, low), high)


def output(view: LayerView, scaled: Expr) -> Expr:
    """Return a requantized sum as the layer's output: zero point, bounds and type applied."""
    op = view.op
    return T.Cast(view.outputs[0].dtype, clamp(scaled + op.output_zero_point, op.act_min, op.act_max))


def mean(total: Expr, count: Expr) -> Expr:
    """Return total / count of int32 expressions, halves away from zero. `count` may be an int."""
    half = count // 2 if isinstance(count, int) else T.truncdiv(count, 2)
    return T.truncdiv(select(total > 0, total + half, total - half), count)


def maximum(a: Expr, b: Expr) -> Expr:
    """Return max(a, b) as a comparison and a select, for running maxima."""
    return tirx.Select(a > b, a, b)


def minimum(a: Expr, b: Expr) -> Expr:
    """Return min(a, b) as a comparison and a select."""
    return tirx.Select(a < b, a, b)


def widen(x: Expr) -> Expr:
    """Return an 8-bit load as int32."""
    return T.Cast("int32", x)


def lowered(x: Expr, offset: int) -> Expr:
    """Return an 8-bit load less `offset` (0 or 128) as int8."""
    return T.Cast("int8", widen(x) - offset) if offset else x


def select(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """Return `then` or `otherwise`. Only the chosen side is evaluated, so it may guard a load."""
    return tirx.if_then_else(condition, then, otherwise)
