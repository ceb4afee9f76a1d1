"""Requantization in two multiplications, with a proof of exactness per channel.

Short rounding

The reference scales an accumulator by m * 2^(-31 - s) (stages.backends.kernels.rounding). The kernels do it with
SMMLAR and SMMLA, (2^32 * sum + x * y [+ 2^31]) >> 32, in two steps:

  t = smmlar(acc, 2m mod 2^32, acc)    (acc * m + 2^30) >> 31, the doubling multiplication: the factor as a signed
                                       number lacks 2^32 (m >= 2^30 makes it negative), and the sum adds acc * 2^32.
                                       smmla: (acc * m) >> 31
  y = smmlar(t, p, zero point)         (t * p + 2^31) >> 32, plus the zero point

p has 32 bits. It is 0 or unit + 1 for layers that round twice, unit for layers that round once. For shifts as large as
those of ADD there is the lowered form: t + (t >> 31), one more instruction, and p = unit.

Results are narrowed to 16 bits before they are clipped, so their range must fit, with the zero point.

Long rounding, for layers that round twice and have a channel without a short rounding. It takes four words per channel
and three more instructions per result:

  t = smmlar(acc << left, 2m mod 2^32, acc << left)    left: the reference's shift to the left, at least 0
  u = t << post; u + (u >> 31)                         lowered by one where it is negative
  y = smmlsr(u, p, zero point)                         (2^32 * zero point - u * p + 2^31) >> 32

p = -2^(32 - s) is an int32 for s >= 1; that is the lowered form, exact for every t. With s <= 0 the result is t itself:
post is 1, elsewhere 0, and half of 2t rounds to t. Results are clipped from 32 bits. What remains to be proved is that
acc << left and 2t fit int32.
"""

from __future__ import annotations

from dataclasses import dataclass

from stages.backends.kernels.eight_bit import Range
from stages.backends.kernels.rounding import is_zero, turns_halves
from stages.ir.layers import ROUNDINGS, Rounding
from stages.support.lazy import np, npt

_BITS = 32  # of a multiplication
MARGIN = 512  # of 16 bits, for the zero point and the kernels' offset of it


def doubled(multiplier: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return 2m modulo 2^32 as int32."""
    return (multiplier.astype(np.int64) * 2).astype(np.uint32).view(np.int32)


def lowered_rounder(shift: int) -> int:
    """Return `p` for a t lowered by one if negative. Raises ValueError for a shift above -2."""
    if shift > -2:
        raise ValueError(f"a shift of {shift} has no rounding by multiplication")
    return 1 << (32 + max(shift, -31))


@dataclass(frozen=True)
class Requantization:
    """Rounding constants `scale`: int32 [channels, 2], 2m and p; if `long` [channels, 4].

    The four words are left, 2m, post and p. A channel with p = 0 always yields the zero point.
    """

    scale: npt.NDArray[np.int32]
    long: bool


def requantization(
    multiplier: npt.NDArray[np.int32], shift: npt.NDArray[np.int32], acc: Range, rounding: Rounding, *, long: bool
) -> Requantization:
    """Return the short rounding of a layer, or the `long` one if allowed and needed.

    Raises ValueError naming the channel if neither is exact.
    """
    try:
        p = rounders(multiplier, shift, acc, rounding)
    except ValueError:
        if not long or not ROUNDINGS[rounding].is_double:
            raise
        return Requantization(long_rounding(multiplier, shift, acc), long=True)
    factors = np.where(p == 0, 0, doubled(multiplier))
    return Requantization(np.stack([factors, p], 1).astype(np.int32), long=False)


def long_rounding(multiplier: npt.NDArray[np.int32], shift: npt.NDArray[np.int32], acc: Range) -> npt.NDArray[np.int32]:
    """Return left, 2m, post and p of each channel.

    Raises ValueError naming the channel if its range is too large.
    """
    m, s = multiplier.astype(np.int64), -shift.astype(np.int64)
    left = np.maximum(-s, 0)
    size = np.where(m == 0, 0, acc.size)
    shifted = np.minimum(np.minimum(size, 1 << 31) << np.minimum(left, 31), 1 << 31)
    t = ((shifted * m) >> 31) + 1
    fits = (shifted < 1 << 31) & ((s > 0) | (t < 1 << 30))
    if not fits.all():
        channel = int(np.argmin(fits))
        raise ValueError(f"channel {channel} has shift {int(shift[channel])}: no exact rounding of its range")
    dead = (t < np.int64(1) << np.maximum(s - 1, 0)) & (s > 0) | (m == 0)
    p = np.where(dead, 0, -(np.int64(1) << (32 - np.maximum(s, 1))))
    words = [left, doubled(multiplier), s <= 0, p]
    return np.where(dead[:, None], 0, np.stack(words, 1)).astype(np.int32)


def rounders(
    multiplier: npt.NDArray[np.int32], shift: npt.NDArray[np.int32], acc: Range, rounding: Rounding
) -> npt.NDArray[np.int32]:
    """Return `p` of each channel. Raises ValueError naming the channel if no p is exact."""
    m, s = multiplier.astype(np.int64), -shift.astype(np.int64)
    s = np.where(m == 0, 2, s)
    half_ulp = 1 << 30 if ROUNDINGS[rounding].is_double else 0
    t_low, t_high = (acc.low * m + half_ulp) >> 31, (acc.high * m + half_ulp) >> 31
    size = np.maximum(np.abs(t_low), np.abs(t_high))
    unit = np.int64(1) << np.clip(_BITS - s, 0, _BITS)
    if ROUNDINGS[rounding].is_double:
        exact = (s >= 2) & turns_halves(size, np.clip(s, 0, _BITS), _BITS)
        p = unit + 1
    else:
        exact = s >= 2
        p = unit
    fits = size < (np.int64(32768 - MARGIN) << np.maximum(s, 0))
    dead = (s >= 1) & is_zero(size, np.maximum(s, 1))
    p = np.where(dead, 0, np.where(exact & fits, p, -1))
    if p.min() < 0:
        channel = int(np.argmin(p))
        raise ValueError(f"channel {channel} has shift {int(shift[channel])}: no exact short rounding of its range")
    return p.astype(np.int32)
