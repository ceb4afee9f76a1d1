"""Requantization by a second multiplication, and the proof that it is exact.

The reference scales an accumulator by m * 2^(-31 - s) (`stages.ir.layers.rounding`; s = -shift) in two roundings:
t = (acc * m + 2^30) >> 31, then t / 2^s with halves away from zero. The second can be a multiplication that keeps the
upper part of a product, y = (t * p + 2^(bits - 1)) >> bits, which rounds halves towards plus infinity. With `unit` =
2^(bits - s) one of these p is right, over the range of t that weights, bias and activations admit:

  0         |t| < 2^(s - 1): the result is 0, in channels that died in training (`is_zero`)
  unit      if no t in the range is a negative half; or if t is lowered by one when it is negative; or if the layer
            rounds once. (Then t is not rounded, and the result is (t + 2^(s - 1)) >> s. Halves are integers, so the
            bits that t lost cannot change the result.)
  unit + 1  the product is larger in magnitude by |t| * 2^-bits. This rounds a negative half away from zero. It changes
            no other result while |t| < unit, because t * unit is a multiple of unit. For s <= bits - 20 a larger |t|
            is at least 2^(s + 8): then the result is 256 or more and is clipped (`turns_halves`)
"""

from __future__ import annotations

from stages.support.lazy import np, npt


def is_zero(size: npt.NDArray[np.int64], s: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return by channel whether each |t| <= size gives 0. s is in [1, 31]."""
    return size < np.int64(1) << (s - 1)


def turns_halves(size: npt.NDArray[np.int64], s: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.bool_]:
    """Return by channel whether `unit` + 1 rounds each |t| <= size as the reference does.

    s is in [1, bits].
    """
    return (size < np.int64(1) << (bits - s)) | (s <= bits - 20)
