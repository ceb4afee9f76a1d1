"""Functions of 16-bit activations, interpolated between table entries."""

from typing import Any, ClassVar, Literal

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.ir.layers import Array, LayerOp, LayerView
from stages.support.lazy import np

_BITS = {"logistic": 9, "tanh": 8}
_MOST = {"logistic": ((1 << 15) - 1) << 10, "tanh": ((1 << 16) - 1) << 8}


class Interpolated(LayerOp):
    """LOGISTIC and TANH of int16, with outputs in Q0.15.

    Constant `table`, int32[256]: the sigmoid of i / 24 in Q0.16.

    d = (x * multiplier + round) >> shift maps 1.0 to 3 * 4096; round is half of the last bit; a = |d|. With b bits
    below an entry (9 for LOGISTIC, 8 for TANH, which is 2 * sigmoid(2 * x) - 1), h = a >> b and f = a mod 2^b:

      r = table[h] * 2^b + f * (table[h + 1] - table[h]); for h of 255 and above (2^15 - 1) * 2^10, or (2^16 - 1) * 2^8
      LOGISTIC   y = (r + 2^9) >> 10 for d >= 0, else (2^25 - r + 2^9 - 1) >> 10
      TANH       y = (r - 2^23 + 2^7) >> 8 for d >= 0, else (2^23 - r + 2^7 - 1) >> 8
    """

    op: Literal["interpolated"] = "interpolated"
    named_by: ClassVar[str] = "function"
    function: Literal["logistic", "tanh"]
    multiplier: int
    shift: int

    @property
    def bits(self) -> int:
        """Bits below an entry of the table."""
        return _BITS[self.function]

    @property
    def most(self) -> int:
        """Value of r beyond the table."""
        return _MOST[self.function]

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        table = view.constant("table").astype(np.int64)
        result = interpolate(table, inputs[0].astype(np.int64), self.multiplier, self.shift, self.function)
        return result.astype(np.int16)


def interpolate(table: Array, x: Array, multiplier: int, shift: int, function: Literal["logistic", "tanh"]) -> Array:
    """The formula of `Interpolated`, for int64 within int16's range."""
    bits, half = _BITS[function], 1 << shift >> 1
    scaled = (x * multiplier + half) >> shift
    size = np.abs(scaled)
    entry = np.minimum(size >> bits, 254)
    between = (size & ((1 << bits) - 1)) * (table[entry + 1] - table[entry])
    value = np.where(size >> bits >= 255, _MOST[function], (table[entry] << bits) + between)
    signed: Array
    if function == "logistic":
        signed = np.where(scaled >= 0, value + (1 << 9), (1 << 25) - value + (1 << 9) - 1) >> 10
    else:
        signed = np.where(scaled >= 0, value - (1 << 23) + (1 << 7), (1 << 23) - value + (1 << 7) - 1) >> 8
    return signed


class WideSoftmax(LayerOp):
    """Softmax over the last axis of int16, in Q0.15.

    Constants `exp` and `reciprocal`, int32[513], of -10 to 0 and of 1 / (1 + 0) to 1 / (1 + 1).
    With L(v, t) = t[i] + ((t[i + 1] - t[i]) * (v mod 2^7) + 2^6 >> 7), i = 256 + (v >> 7):

      e = L(min(max(M(x - max(row), multiplier, shift) + 2^15 - 1, -2^15), 2^15 - 1), exp)
      z = leading zeros of the row's sum of e in 32 bits; n = (sum << (z - 1)) + 2^13 >> 14
      y = clamp(e * L(clamp(n - 2^15 - 2^16), reciprocal) + 2^(30 - z) >> 31 - z), from 0 on; M rounds as `double`
    """

    op: Literal["wide_softmax"] = "wide_softmax"
    alias: ClassVar[str] = "softmax"
    multiplier: int
    shift: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        def looked_up(values: Any, role: str) -> Any:
            table, at = view.constant(role).astype(np.int64), np.clip(values, -(1 << 15), (1 << 15) - 1)
            entry = 256 + (at >> 7)
            return table[entry] + (((table[entry + 1] - table[entry]) * (at & 127) + 64) >> 7)

        x = inputs[0].astype(np.int64)
        below = x - x.max(axis=-1, keepdims=True)
        scaled = multiply_by_quantized_multiplier(below, self.multiplier, self.shift, "double")
        powers = looked_up(scaled + (1 << 15) - 1, "exp")
        total = powers.sum(axis=-1, keepdims=True)
        zeros = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
        normal = ((total << (zeros - 1)) + (1 << 13)) >> 14
        factor = looked_up(normal - (1 << 15) - (1 << 16), "reciprocal")
        return np.clip((powers * factor + (1 << (30 - zeros))) >> (31 - zeros), 0, (1 << 15) - 1).astype(np.int16)
