"""What the operators of the integer graph have in common.

Fixed-point convention (LiteRT reference kernels): a real multiplier m is `multiplier` * 2^(shift - 31) with
`multiplier` an int32 in [2^30, 2^31) (or 0) and `shift` its exponent, positive for a left shift. `rounding` names how
x * m is rounded; the operators' formulas write it M(x, multiplier, shift):

  double  MultiplyByQuantizedMultiplier of the reference kernels: x is shifted left by max(shift, 0), then
          SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT by max(-shift, 0): rounds twice
  single  one rounding of the 64-bit product: (x * multiplier + 2^(30 - shift)) >> (31 - shift)
  steps   no product: the constant `steps`, int32[rows, 256], has for each row the lowest result and for each of the 255
          above it the largest x below; `step_rows`, int32[O], tells the row of each output channel. For the products in
          float64 that no multiplier gives (stages/quantize/real_products.py)
  wide    of 16-bit activations, where x has 64 bits: (x * m + 2^(14 - shift)) >> (15 - shift) with the multiplier's
          upper half, m = min((multiplier + 2^15) >> 16, 2^15 - 1)
  real    of 16-bit activations, where x has 64 bits: the float64 product with the constant `real`, float64[O], to the
          nearest integer, halves away from zero
  floor   one product, one sum, no rounding: (x * multiplier + offset) >> shift, where `shift`, from 0 on, goes to the
          right, as does no other's, and `offset` is a constant, int32[O]. No reference kernel computes so, but engines
          do; tensorize gives it to layers that one of them computes where a recipe asks for it

All zero points are those of the tensors: the kernel computes sum((x - input_zero_point) * (w - weight_zero_point)).
Constants (weights, bias, per-channel multiplier and shift, tables) are named in `Layer.constants` by role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import numpy.typing as npt

    from stages.ir.graph import LayerView, Tensor
    from stages.ir.operators.channels import Kept, ValueRange

    Array = npt.NDArray[Any]

Rounding = Literal["double", "single", "steps", "wide", "real", "floor"]


@dataclass(frozen=True)
class Shifted:
    """An operator on integers that stand for the same numbers, larger by so much; `constants` are those that differ."""

    op: LayerOp
    constants: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Narrowed:
    """An operator on tensors of fewer channels; `constants` are those that differ, new ones among them."""

    op: LayerOp
    constants: Mapping[str, Array] = field(default_factory=dict)


class LayerOp(BaseModel):
    """An operator of the integer graph with every constant that its arithmetic needs. `op` tells the classes apart."""

    # Built when the first is made: planning loads these classes and makes none.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    # Whether it has tensors beyond 8 bits and float32 because the file does, as what moves any bytes.
    any_type: ClassVar[bool] = False
    # Whether it writes state that other layers read: it is needed even where nobody reads its output.
    lasting: ClassVar[bool] = False
    # Whether an element of the output follows from the elements of the inputs, which broadcast, at its place alone.
    by_element: ClassVar[bool] = False
    # Whether it does the same to every channel: those that `carries` makes of equal ones are equal.
    uniform: ClassVar[bool] = False
    if TYPE_CHECKING:
        op: str

    @property
    def named(self) -> str:
        """The name in rules and reports."""
        return self.op

    @classmethod
    def names(cls) -> frozenset[str]:
        """All that a rule can call layers of the class."""
        return frozenset(get_args(cls.model_fields["op"].annotation)) if "op" in cls.model_fields else frozenset()

    def products(self, out: Tensor) -> int:
        """Multiply-accumulates that make the output, padding included, as papers count them."""
        return 0

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """The operator where each data input's integers, zero point and all, are larger by `inputs`, and the output's.

        `view` is the layer as it is. None where the arithmetic would be another, as of functions of the type's bounds.
        """
        return None if any((*inputs, output)) else Shifted(self)

    def reach(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange | None:
        """What the output's channels can be for inputs that are in `inputs`; None where nobody has worked it out."""
        return None

    def carries(self, view: LayerView) -> tuple[Array, ...] | None:
        """For each input the channel that each output channel is made of, alone or with such of others, int[C]; or NEW.

        Without a channel of the input there is none of the output, and the other way round. Nothing, (), where sums
        over channels make new ones: then any may be left out. None where all must stay.
        """
        return None

    def alike(self, view: LayerView, inputs: Sequence[Array]) -> Array | None:
        """Labels of the output's channels, int64[C], equal where channels are, for all inputs.

        `inputs` are labels of the inputs' channels. None where nobody has worked it out.
        """
        import numpy as np

        from stages.ir.operators.channels import NEW, labels

        carried = self.carries(view) if self.uniform else None
        if not carried:
            return None
        pixel = np.arange(len(carried[0])) // max(len(own) for own in inputs)  # where several lie in the last axis
        return labels(pixel, *(np.where(own == NEW, NEW, of[own]) for own, of in zip(carried, inputs, strict=True)))

    def absorbs(self, view: LayerView, reach: ValueRange) -> Array:
        """Which channels of an input that is in `reach` its sums can do without, bool[C]. Where `carries` is ()."""
        raise NotImplementedError

    def factors(self, view: LayerView) -> Array:
        """The weights less their zero point, int64[..., C] for an input's C channels. Where `carries` is ()."""
        raise NotImplementedError

    def narrowed(self, view: LayerView, inputs: Sequence[Kept], output: Kept) -> Narrowed:
        """The operator on the channels that are kept. `view` is the layer as it is."""
        return Narrowed(self)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """The layer's output by numpy, the reference of its kernels. Arrays are in logical order."""
        raise ValueError(f"layer {view.layer.name}: the integer reference has no {view.layer.kind}")

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """The output, and what the layer's state is afterwards; `states` is what it was before."""
        return self.compute(view, *inputs), list(states)


class Clamped(LayerOp):
    """Output zero point and the clamp of the fused activation, in the output's integers."""

    output_zero_point: int
    act_min: int
    act_max: int

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """All that is in integers of the inputs are their zero points, `input_zero_point` or `zero_points`."""
        fields: dict[str, Any] = {
            name: getattr(self, name) + output for name in ("output_zero_point", "act_min", "act_max")
        }
        if hasattr(self, "zero_points"):
            fields["zero_points"] = tuple(zero + more for zero, more in zip(self.zero_points, inputs, strict=True))
        elif hasattr(self, "input_zero_point"):
            fields["input_zero_point"] = self.input_zero_point + inputs[0]
        return Shifted(self.model_copy(update=fields))

    def clamped(self, view: LayerView, scaled: Array) -> Array:
        """Integers on the output's scale as the output: zero point added, clamped."""
        import numpy as np

        return np.clip(scaled + self.output_zero_point, self.act_min, self.act_max).astype(view.outputs[0].dtype)

    def terms(self, out: Tensor) -> int:
        """How many products, or elements, one sum has."""
        return self.products(out) // out.elements

    def scaling(self, view: LayerView) -> tuple[Array | int, Array | int]:
        """Multiplier and shift of its sums, one for all or one for each channel."""
        return view.constant("multiplier"), view.constant("shift")

    def reach_of_sums(self, view: LayerView, least: Array, most: Array) -> ValueRange:
        """Of sums of products from `least` to `most`, int64[O]: what `requantized` makes of them never falls.

        But where an int32 wraps on the way; then all that the clamp leaves.
        """
        import numpy as np

        from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN
        from stages.ir.operators.channels import ValueRange

        bias: Array | int = view.constant("bias").astype(np.int64) if view.has("bias") else 0
        left = np.maximum(view.constant("shift").astype(np.int64), 0) if view.has("shift") else 0
        ends = (np.left_shift(sums + bias, left) for sums in (least, most))
        fits = np.all([(end >= INT32_MIN) & (end <= INT32_MAX) for end in ends], axis=0)
        low, high = (self.requantized(view, np.where(fits, sums, 0)).astype(np.int64) for sums in (least, most))
        return ValueRange(np.where(fits, low, self.act_min), np.where(fits, high, self.act_max))

    def requantized(self, view: LayerView, total: Array) -> Array:
        """Sums of products as the output: bias, int32, the channel's multiplier and shift or steps, then `clamped`."""
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
            found = [by_steps(total[..., channel], own) for channel, own in enumerate(steps)]
            return self.clamped(view, np.stack(found, axis=-1))
        multiplier, shift = view.constant("multiplier"), view.constant("shift")
        if view.op.rounding == "floor":
            return self.clamped(view, scale_and_floor(total, multiplier, view.constant("offset"), shift))
        return self.clamped(view, multiply_by_quantized_multiplier(total, multiplier, shift, view.op.rounding))


PER_CHANNEL = ("bias", "multiplier", "shift", "step_rows", "real")


def per_channel(view: LayerView, output: Kept) -> dict[str, Array]:
    """The constants that have a number for each output channel, for those that are kept."""
    return {role: view.constant(role)[output.channels] for role in PER_CHANNEL if view.has(role)}


def told_apart(view: LayerView) -> list[Array]:
    """The constants that have a number for each output channel."""
    return [view.constant(role) for role in PER_CHANNEL if view.has(role)]


def is_known_by_channel(view: LayerView) -> bool:
    """Whether of each constant it is known if it has a number for each output channel."""
    return view.layer.constants.keys() <= {*PER_CHANNEL, "weights", "steps"}


class Window(Clamped):
    """A sliding window. Pairs are (height, width); `padding` is (top, left, bottom, right)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]

    def taps(self, view: LayerView, image: Array, value: int) -> list[Array]:
        """For each tap of the window, row by row, what it meets (N, *out, C) of an image padded with `value`, int64."""
        import numpy as np

        from stages.ir.arithmetic.sliding import tapped

        top, left, bottom, right = self.padding
        amounts = ((0, 0), (top, bottom), (left, right), (0, 0))
        padded = np.pad(image.astype(np.int64), amounts, constant_values=value)
        (_, height, width, _), dilation = view.outputs[0].shape, getattr(self, "dilation", (1, 1))
        return tapped(padded, self.kernel, self.stride, dilation, (height, width))
