"""Bases of layers that requantize sums and clamp the result, and their roundings.

Fixed-point convention (LiteRT reference kernels): a real multiplier m is `multiplier` * 2^(shift - 31) with
`multiplier` an int32 in [2^30, 2^31) (or 0) and `shift` its exponent, positive for a left shift. `rounding` names how
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

All zero points are those of the tensors: the kernel computes sum((x - input_zero_point) * (w - weight_zero_point)).
Constants (weights, bias, per-channel multiplier and shift, tables) are named in `Layer.constants` by role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from stages.ir.layers.layer import LayerOp, LayerView, Shifted

if TYPE_CHECKING:
    import numpy.typing as npt

    from stages.ir.layers.channels import Kept, ValueRange
    from stages.ir.layers.tensor import Tensor

    Array = npt.NDArray[Any]

Rounding = Literal["double", "single", "steps", "wide", "real", "floor"]


class Clamped(LayerOp):
    """A layer with an output zero point and the clamp of a fused activation, in integers."""

    output_zero_point: int
    act_min: int
    act_max: int

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """Shift zero points and clamp: of the inputs `input_zero_point` or `zero_points`."""
        fields: dict[str, Any] = {
            name: getattr(self, name) + output for name in ("output_zero_point", "act_min", "act_max")
        }
        if hasattr(self, "zero_points"):
            fields["zero_points"] = tuple(zero + more for zero, more in zip(self.zero_points, inputs, strict=True))
        elif hasattr(self, "input_zero_point"):
            fields["input_zero_point"] = self.input_zero_point + inputs[0]
        return Shifted(self.model_copy(update=fields))

    def clamped(self, view: LayerView, scaled: Array) -> Array:
        """Add the zero point, clamp, and convert to the output's type."""
        import numpy as np

        return np.clip(scaled + self.output_zero_point, self.act_min, self.act_max).astype(view.outputs[0].dtype)

    def terms(self, out: Tensor) -> int:
        """Number of products, or elements, in one sum."""
        return self.products(out) // out.elements

    def scaling(self, view: LayerView) -> tuple[Array | int, Array | int]:
        """Multiplier and shift of the sums, one for all or one for each channel."""
        return view.constant("multiplier"), view.constant("shift")

    def reach_of_sums(self, view: LayerView, least: Array, most: Array) -> ValueRange:
        """Value range of requantized sums from `least` to `most`, int64[O].

        `requantized` is monotonic unless an int32 wraps. Then the range is that of the clamp.
        """
        import numpy as np

        from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN
        from stages.ir.layers.channels import ValueRange

        bias: Array | int = view.constant("bias").astype(np.int64) if view.has("bias") else 0
        left_shift = np.maximum(view.constant("shift").astype(np.int64), 0) if view.has("shift") else 0
        ends = (np.left_shift(sums + bias, left_shift) for sums in (least, most))
        fits = np.all([(end >= INT32_MIN) & (end <= INT32_MAX) for end in ends], axis=0)
        low, high = (self.requantized(view, np.where(fits, sums, 0)).astype(np.int64) for sums in (least, most))
        return ValueRange(np.where(fits, low, self.act_min), np.where(fits, high, self.act_max))

    def requantized(self, view: LayerView, total: Array) -> Array:
        """Requantize sums: add the bias as int32, scale per channel or by breakpoints, `clamped`."""
        import numpy as np

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

        total = total + view.constant("bias").astype(np.int64) if view.has("bias") else total
        if view.op.rounding == "real":
            product = np.clip(total * view.constant("real"), INT32_MIN, INT32_MAX)
            return self.clamped(view, round_half_away(product).astype(np.int64))
        if view.op.rounding == "wide":
            return self.clamped(view, scale_by_half(total, view.constant("multiplier"), view.constant("shift")))
        total = wrap(total)
        if view.op.rounding == "steps":
            steps = view.constant("steps")[view.constant("step_rows")]
            results = [by_steps(total[..., channel], breakpoints) for channel, breakpoints in enumerate(steps)]
            return self.clamped(view, np.stack(results, axis=-1))
        multiplier, shift = view.constant("multiplier"), view.constant("shift")
        if view.op.rounding == "floor":
            return self.clamped(view, scale_and_floor(total, multiplier, view.constant("offset"), shift))
        return self.clamped(view, multiply_by_quantized_multiplier(total, multiplier, shift, view.op.rounding))


PER_CHANNEL = ("bias", "multiplier", "shift", "step_rows", "real")


def per_channel(view: LayerView, output: Kept) -> dict[str, Array]:
    """Constants with a value for each output channel, of the remaining channels."""
    return {role: view.constant(role)[output.channels] for role in PER_CHANNEL if view.has(role)}


def channel_constants(view: LayerView) -> list[Array]:
    """Constants with a value for each output channel."""
    return [view.constant(role) for role in PER_CHANNEL if view.has(role)]


def is_known_by_channel(view: LayerView) -> bool:
    """Whether each constant is known to have a value for each output channel."""
    return view.layer.constants.keys() <= {*PER_CHANNEL, "weights", "steps"}


class Window(Clamped):
    """A sliding window. Pairs are (height, width); `padding` is (top, left, bottom, right)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]

    def taps(self, view: LayerView, image: Array, value: int) -> list[Array]:
        """For each tap of the window, row by row, its inputs, int64 (N, *out, C).

        The image is padded with `value`.
        """
        import numpy as np

        from stages.ir.arithmetic.sliding import tapped

        top, left, bottom, right = self.padding
        amounts = ((0, 0), (top, bottom), (left, right), (0, 0))
        padded = np.pad(image.astype(np.int64), amounts, constant_values=value)
        (_, height, width, _), dilation = view.outputs[0].shape, getattr(self, "dilation", (1, 1))
        return tapped(padded, self.kernel, self.stride, dilation, (height, width))
