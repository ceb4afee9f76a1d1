"""ADD, SUB and MUL of 8 bits with halves to even, for scales whose quotients have few bits."""

from typing import ClassVar, Literal

from stages.ir.layers import Array, Clamped, LayerView
from stages.support.lazy import np


class HalfEven(Clamped):
    """ADD, SUB and MUL of ONNX Runtime if exact halves are frequent, with broadcasting.

    With v_i = x_i - zero_point_i:

    t = v_0 * times_0 +- v_1 * times_1, or v_0 * v_1 * times_0 * times_1
    y = E(t / 2^shift + parity) - parity + output_zero_point

    E is the nearest integer, halves to the even one; `parity` is 1 if an odd zero point is added before rounding.
    """

    by_element: ClassVar[bool] = True
    op: Literal["even_add", "even_sub", "even_mul"]
    zero_points: tuple[int, int]
    times: tuple[int, int]
    shift: int
    parity: Literal[0, 1]

    @property
    def named(self) -> str:
        """Name in rules and reports."""
        return self.op.removeprefix("even_")

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.ir.arithmetic.pairs import halves_to_even

        first, second = (
            (x.astype(np.int64) - zero) * factor
            for x, zero, factor in zip(inputs, self.zero_points, self.times, strict=True)
        )
        total = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[self.named](first, second)
        return self.clamped(view, halves_to_even(total, self.shift, self.parity))
