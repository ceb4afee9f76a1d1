"""Element-wise layers of 16-bit activations whose 8-bit form differs."""

from typing import ClassVar, Literal

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, rounding_divide_by_pot
from stages.ir.layers import Array, Clamped, LayerOp, LayerView
from stages.support.lazy import np


class Lines(LayerOp):
    """A function of int16, interpolated between 513 table entries.

    With the constant `table`, int32, and i = 256 + (x >> 7):

    y = table[i] + ((table[i + 1] - table[i]) * (x mod 2^7) + 2^6 >> 7)

    The difference and y wrap to int16.
    """

    op: Literal["lines"] = "lines"
    named_by: ClassVar[str] = "function"
    function: Literal["exp", "gelu", "log", "rsqrt"]

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        table, x = view.constant("table").astype(np.int64), inputs[0].astype(np.int64)
        entry = 256 + (x >> 7)
        slope = (table[entry + 1] - table[entry]).astype(np.int16).astype(np.int64)
        return (table[entry] + ((slope * (x & 127) + 64) >> 7)).astype(np.int16)


class Leaky(Clamped):
    """LEAKY_RELU and ABS of int16.

    y = M(x, multiplier, shift) for x >= 0, else sign * M(x, slope, slope_shift)
    """

    op: Literal["leaky"] = "leaky"
    named_by: ClassVar[str] = "function"
    function: Literal["leaky_relu", "abs"] = "leaky_relu"
    multiplier: int
    shift: int
    slope: int
    slope_shift: int
    sign: Literal[1, -1] = 1

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        x = inputs[0].astype(np.int64)
        above = multiply_by_quantized_multiplier(x, self.multiplier, self.shift, "double")
        below = multiply_by_quantized_multiplier(x, self.slope, self.slope_shift, "double")
        return self.clamped(view, np.where(x >= 0, above, self.sign * below))


class PowerOfTwoSum(Clamped):
    """ADD and SUB of int16 with power-of-two scales, with broadcasting.

    y = R(x_0, shift_0) +- R(x_1, shift_1), where R divides by a power of two, halves away from zero.
    """

    op: Literal["power_of_two_add", "power_of_two_sub"]
    shifts: tuple[int, int]

    @property
    def named(self) -> str:
        """Name in rules and reports."""
        return self.op.removeprefix("power_of_two_")

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        first, second = (rounding_divide_by_pot(x, shift) for x, shift in zip(inputs, self.shifts, strict=True))
        return self.clamped(view, first + second if self.named == "add" else first - second)
