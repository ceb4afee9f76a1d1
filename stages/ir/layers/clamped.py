"""Bases of layers that requantize sums and clamp the result.

`rounding` names how sums are scaled (stages.ir.layers.rounding).

All zero points are those of the tensors: the kernel computes sum((x - input_zero_point) * (w - weight_zero_point)).
Constants (weights, bias, per-channel multiplier and shift, tables) are named in `Layer.constants` by role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN
from stages.ir.arrays import Array
from stages.ir.layers.layer import LayerOp, LayerView, Shifted
from stages.ir.layers.rounding import ROUNDINGS
from stages.ir.layers.tensor import Tensor
from stages.support.lazy import np

if TYPE_CHECKING:
    from stages.ir.layers.channels import Kept, ValueRange


class Clamped(LayerOp):
    """A layer with an output zero point and the clamp of a fused activation, in integers."""

    output_zero_point: int
    act_min: int
    act_max: int

    @property
    def rounds_once(self) -> bool:
        """True if a product with a 32-bit multiplier is rounded once (`single`)."""
        return ROUNDINGS[self.rounding].is_single  # type: ignore[attr-defined]

    @property
    def rounds_twice(self) -> bool:
        """True if a product with a 32-bit multiplier is rounded twice (`double`)."""
        return ROUNDINGS[self.rounding].is_double  # type: ignore[attr-defined]

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
        return np.clip(scaled + self.output_zero_point, self.act_min, self.act_max).astype(view.outputs[0].dtype)

    def terms(self, out: Tensor) -> int:
        """Number of products, or elements, in one sum."""
        return self.macs_of(out) // out.elements

    def scaling(self, view: LayerView) -> tuple[Array | int, Array | int]:
        """Multiplier and shift of the sums, one for all or one for each channel."""
        return view.constant("multiplier"), view.constant("shift")

    def range_of_sums(self, view: LayerView, least: Array, most: Array) -> ValueRange:
        """Value range of requantized sums from `least` to `most`, int64[O].

        `requantized` is monotonic unless an int32 wraps. Then the range is the clamp's.
        """
        from stages.ir.layers.channels import ValueRange

        bias: Array | int = view.constant("bias").astype(np.int64) if view.has("bias") else 0
        left_shift = np.maximum(view.constant("shift").astype(np.int64), 0) if view.has("shift") else 0
        ends = (np.left_shift(sums + bias, left_shift) for sums in (least, most))
        fits = np.all([(end >= INT32_MIN) & (end <= INT32_MAX) for end in ends], axis=0)
        low, high = (self.requantized(view, np.where(fits, sums, 0)).astype(np.int64) for sums in (least, most))
        return ValueRange(np.where(fits, low, self.act_min), np.where(fits, high, self.act_max))

    def requantized(self, view: LayerView, total: Array) -> Array:
        """Requantize sums: add the bias as int32, scale per channel or by breakpoints, `clamped`."""
        total = total + view.constant("bias").astype(np.int64) if view.has("bias") else total
        return self.clamped(view, ROUNDINGS[view.op.rounding].scaled(view, total))


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
        from stages.ir.arithmetic.sliding import tapped

        top, left, bottom, right = self.padding
        amounts = ((0, 0), (top, bottom), (left, right), (0, 0))
        padded = np.pad(image.astype(np.int64), amounts, constant_values=value)
        (_, height, width, _), dilation = view.outputs[0].shape, getattr(self, "dilation", (1, 1))
        return tapped(padded, self.kernel, self.stride, dilation, (height, width))
