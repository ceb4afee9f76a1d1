"""The roundings of layers: one entry of ROUNDINGS for each.

Fixed-point convention (LiteRT reference kernels): a real multiplier m is `multiplier` * 2^(shift - 31) with
`multiplier` an int32 in [2^30, 2^31) (or 0) and `shift` its exponent, positive for a left shift. A rounding names how
x * m is rounded; the operators' formulas write it M(x, multiplier, shift):

  double  MultiplyByQuantizedMultiplier of the reference kernels: x is shifted left by max(shift, 0), then
          SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT by max(-shift, 0): rounds twice
  single  one rounding of the 64-bit product: (x * multiplier + 2^(30 - shift)) >> (31 - shift)
  steps   no product: each row of the constant `steps`, int32[rows, 256], has the lowest result, and for each of the 255
          results above it the largest x below it; `step_rows`, int32[O], is the row of each output channel. For
          products in float64 that no multiplier gives (stages/quantize/real_products.py)
  wide    of 16-bit activations, where x has 64 bits: (x * m + 2^(14 - shift)) >> (15 - shift) with the multiplier's
          upper half, m = min((multiplier + 2^15) >> 16, 2^15 - 1)
  real    of 16-bit activations, where x has 64 bits: the float64 product with the constant `real`, float64[O], to the
          nearest integer, halves away from zero
  floor   one product, one sum, no rounding: (x * multiplier + offset) >> shift. Only here `shift` is a right shift
          (from 0 on). `offset` is a constant, int32[O]. For engines, not for reference kernels: tensorize sets it for
          layers of an engine if the recipe asks for it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stages.ir.arithmetic.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    by_steps,
    multiply_by_quantized_multiplier,
    round_half_away,
    scale_and_floor,
    scale_by_half,
    wrap,
)
from stages.ir.arrays import Array
from stages.support.lazy import np

if TYPE_CHECKING:
    from stages.ir.layers.layer import LayerView

Rounding = Literal["double", "single", "steps", "wide", "real", "floor"]


def _multiplied(view: LayerView, sums: Array) -> Array:
    multiplier, shift = view.constant("multiplier"), view.constant("shift")
    return multiply_by_quantized_multiplier(wrap(sums), multiplier, shift, view.op.rounding)


def _stepped(view: LayerView, sums: Array) -> Array:
    sums, steps = wrap(sums), view.constant("steps")[view.constant("step_rows")]
    return np.stack([by_steps(sums[..., channel], rows) for channel, rows in enumerate(steps)], axis=-1)


def _wide(view: LayerView, sums: Array) -> Array:
    return scale_by_half(sums, view.constant("multiplier"), view.constant("shift"))


def _real(view: LayerView, sums: Array) -> Array:
    return round_half_away(np.clip(sums * view.constant("real"), INT32_MIN, INT32_MAX)).astype(np.int64)


def _floored(view: LayerView, sums: Array) -> Array:
    return scale_and_floor(wrap(sums), view.constant("multiplier"), view.constant("offset"), view.constant("shift"))


@dataclass(frozen=True)
class RoundingRule:
    """A rounding.

    scaled        the formula: sums with bias, int64, to results without the zero point, int64
    why_not       reason of a kernel that does not have it
    is_single     one rounding of the product with a 32-bit multiplier
    is_double     two roundings of that product
    special       a kernel that has only such roundings is for no other layers
    """

    scaled: Callable[[LayerView, Array], Array]
    why_not: str
    is_single: bool = False
    is_double: bool = False
    special: bool = False

    @property
    def is_multiplied(self) -> bool:
        """True for products with a 32-bit multiplier, rounded as in LiteRT or ONNX Runtime.

        Engines have these.
        """
        return self.is_single or self.is_double


_SIXTEEN = "16-bit activations and 64-bit sums; this kernel has 8-bit activations and 32-bit sums"
ROUNDINGS: Mapping[str, RoundingRule] = {
    "double": RoundingRule(_multiplied, "the layer rounds twice; this kernel rounds once", is_double=True),
    "single": RoundingRule(_multiplied, "the layer rounds once; this kernel rounds twice", is_single=True),
    "steps": RoundingRule(
        _stepped, "no 32-bit multiplier rounds its sums as LiteRT; this kernel multiplies", special=True
    ),
    "wide": RoundingRule(_wide, _SIXTEEN, special=True),
    "real": RoundingRule(_real, _SIXTEEN, special=True),
    "floor": RoundingRule(_floored, "rounding floor of an engine; this kernel rounds as LiteRT"),
}
