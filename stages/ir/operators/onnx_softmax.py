"""Softmax of 8 bits as in ONNX Runtime, also QLinearSoftmax."""

from typing import ClassVar, Literal

from stages.ir.layers import Array, Clamped, LayerView
from stages.support.lazy import np

EXP_BITS = 30  # fraction bits of an exponential
FACTOR_BITS = 59  # of the output's inverse scale
MOST_SHIFT = 62  # beyond it every share rounds to 0


class NearestSoftmax(Clamped):
    """Softmax over the last axis, rounded once, for any scale of the output.

    With d = max(row) - x:

      total = sum over the row of exp[d]                           Q30, int64
      more  = bits of total above 31, or 0
      K     = factor / (total >> more)                             cut off
      y     = (exp[d] * K + half) >> min(shift + more, 62)         half of what is shifted out

    Constant `exp`, int32[256]: exp(-input_scale * d) in Q30. `factor` * 2^-shift is 1 / output_scale, factor has 59
    bits. The output is `y` with its zero point, clamped.
    """

    op: Literal["nearest_softmax"] = "nearest_softmax"
    alias: ClassVar[str] = "softmax"
    factor: int
    shift: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        values = inputs[0].astype(np.int64)
        powers = view.constant("exp").astype(np.int64)[values.max(axis=-1, keepdims=True) - values]
        total = powers.sum(axis=-1, keepdims=True)
        more = np.maximum(np.frexp((total >> 31).astype(np.float64))[1], 0)
        shift = np.minimum(self.shift + more, MOST_SHIFT)
        product = powers * (np.int64(self.factor) // (total >> more))
        return self.clamped(view, (product + (np.int64(1) << (shift - 1))) >> shift)


class FloatSoftmax(Clamped):
    """QLinearSoftmax over the last axis, in float32 as in ONNX Runtime.

    With d = max(row) - x:

      total = exp[d] of the row, one added after the other         float32
      q     = exp[d] * factor / total                              float32, to the nearest integer, halves to even

    Constant `exp`, float32[256]. The output is `q` with its zero point, clamped.
    """

    op: Literal["float_softmax"] = "float_softmax"
    alias: ClassVar[str] = "softmax"
    factor: float

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        values = inputs[0].astype(np.int64)
        powers = view.constant("exp")[values.max(axis=-1, keepdims=True) - values]
        total = np.add.accumulate(powers, axis=-1, dtype=np.float32)[..., -1:]
        return self.clamped(view, np.rint(powers * np.float32(self.factor) / total).astype(np.int64))
