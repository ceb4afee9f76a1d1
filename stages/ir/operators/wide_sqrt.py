"""SQRT of int16, in float32 as in LiteRT."""

from typing import ClassVar, Literal

from stages.ir.layers import Array, Clamped, LayerView
from stages.support.lazy import np


class WideSqrt(Clamped):
    """y = sqrt(x * input_scale) / output_scale, each step a float32, truncated.

    Values below 0 count as 0.
    """

    op: Literal["wide_sqrt"] = "wide_sqrt"
    alias: ClassVar[str] = "sqrt"
    input_scale: float
    output_scale: float

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        real = np.maximum(inputs[0], 0).astype(np.float32) * np.float32(self.input_scale)
        return self.clamped(view, np.trunc(np.sqrt(real) / np.float32(self.output_scale)).astype(np.int64))
