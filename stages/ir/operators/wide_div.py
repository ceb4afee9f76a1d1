"""DIV of int16, whose divisors are too many for a table of reciprocals."""

from typing import ClassVar, Literal

from stages.ir.arithmetic.fixed_point import (
    reciprocal,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from stages.ir.layers import Array, Clamped, LayerView
from stages.support.lazy import np

_SHIFTED = 63  # processors mask the shift of an int64


class WideDiv(Clamped):
    """DIV with broadcasting, computed as `Div` (stages.ir.operators.arithmetic).

    The inverse of d is as in Div's constant, by gemmlowp's Newton steps. Of e, which may be below 0, the lowest 6 bits
    count: the reference shifts an int64 by it. The reference aborts at d = 0, which counts as 1 here.
    """

    by_element: ClassVar[bool] = True
    op: Literal["wide_div"] = "wide_div"
    alias: ClassVar[str] = "div"
    output_multiplier: int
    output_shift: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        value, divisor = (x.astype(np.int64) for x in inputs)
        value, divisor = np.where(divisor < 0, -value, value), np.maximum(np.abs(divisor), 1)
        bits, free_bits = _bits(divisor), 31 - _bits(np.where(value < 0, -1 - value, value))
        quotient = saturating_rounding_doubling_high_mul(value << free_bits, reciprocal(divisor << (32 - bits)))
        scaled = saturating_rounding_doubling_high_mul(quotient, self.output_multiplier)
        exponent = (free_bits + bits - 1 - self.output_shift) & _SHIFTED
        undefined = (scaled >> (exponent & 31)) + (scaled >= 0)
        divided = rounding_divide_by_pot(scaled, np.minimum(exponent, 31))
        return self.clamped(view, np.where(exponent > 31, undefined, divided))


def _bits(x: Array) -> Array:
    """Number of bits of each integer from 0 to 2^52."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)
