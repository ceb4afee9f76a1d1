"""Second roundings of the rvp kernels, and when the short one is exact.

The proof is in stages.backends.kernels.rounding. The first rounding of the reference, t = (acc * m + 2^30) >> 31, is
one kwmmul.u. The second has two forms:

  short   smmul.u: (t * p + 2^31) >> 32, one instruction for all lanes
  wide    lower t by one where it is negative, then kwmmul.u by p = 2^(31 - s): three instructions, exact for all s in
          1 ... 31

Layers that round once (rounding `single`: (acc * m + 2^(30 + s)) >> (31 + s)) take t = (acc * m) >> 32, one smmul, and
round t / 2^(s - 1) with halves towards plus infinity: short with p = 2^(33 - s) for s >= 3, wide (without lowering)
with p = 2^(32 - s) for s >= 2. The low half of the product does not matter: a half is a multiple of 2^32.

The short form also narrows results to 16 bits without saturation, so their range must fit, with the zero point.
"""

from __future__ import annotations

from dataclasses import dataclass

from stages.backends.kernels.eight_bit import Range
from stages.backends.kernels.rounding import is_zero, turns_halves
from stages.support.lazy import np, npt

_BITS = 32  # of the short form


def high_mul(acc: npt.NDArray[np.int64], multiplier: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """kwmmul.u: (acc * multiplier + 2^30) >> 31."""
    return (acc * multiplier + (1 << 30)) >> 31


@dataclass(frozen=True)
class Rounders:
    """Second roundings, int64 [channels]: `short` and `wide` p by channel, -1 if not exact.

    shift   the channel's own
    """

    short: npt.NDArray[np.int64]
    wide: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]

    def part(self, channels: slice) -> Rounders:
        """Return the rounders of some channels."""
        return Rounders(self.short[channels], self.wide[channels], self.shift[channels])


def rounders(
    multiplier: npt.NDArray[np.int32], shift: npt.NDArray[np.int32], acc: Range, *, any_shift: bool = False
) -> Rounders:
    """Return the rounders of each channel.

    With `any_shift` a channel with a multiplier of 1/2 or more (shift >= 0) has none; without it the function raises
    ValueError.
    """
    m, s = multiplier.astype(np.int64), -shift.astype(np.int64)
    s = np.where(m == 0, 1, s)
    none = s < 1
    if (not any_shift and none.any()) or s.max() > 31:
        raise ValueError("shifts must be in [-31, -1]")
    s = np.maximum(s, 1)
    low, high = high_mul(acc.low, m), high_mul(acc.high, m)
    size = np.maximum(np.abs(low), np.abs(high))
    half = np.int64(1) << (s - 1)
    fits = size < (np.int64(32767 - 512) << s)
    # The negative half nearest to zero within the range is at most min(high, -half); the next below is 2^s further.
    top = np.minimum(high, -half)
    nearest = -half - ((-half - top + (half << 1) - 1) // (half << 1)) * (half << 1)
    no_half = nearest < low
    short = np.full_like(m, -1)
    usable = s >= 2
    short = np.where(usable & turns_halves(size, s, _BITS), (np.int64(1) << (_BITS - s)) + 1, short)
    short = np.where(usable & no_half, np.int64(1) << (_BITS - s), short)
    short = np.where(is_zero(size, s), 0, short)
    wide = np.int64(1) << (31 - s)
    return Rounders(np.where(fits & ~none, short, -1), np.where(none, -1, wide), np.where(none, shift, -s))


def rounders_once(multiplier: npt.NDArray[np.int32], shift: npt.NDArray[np.int32], acc: Range) -> Rounders:
    """Return rounders for layers that round once.

    Raises ValueError for a multiplier of 1/4 or more (shift > -2).
    """
    m, s = multiplier.astype(np.int64), -shift.astype(np.int64)
    s = np.where(m == 0, 2, s)
    if s.min() < 2 or s.max() > 31:
        raise ValueError("shifts must be in [-31, -2]")
    size = acc.size * m >> 31
    fits = size < (np.int64(32767 - 512) << s)
    short = np.where(s >= 3, np.int64(1) << (33 - s), -1)
    return Rounders(np.where(fits, short, -1), np.int64(1) << (32 - s), -s)
