"""Requantization in two 31-bit vector multiplications (see backends.kernels.rounding).

  t = VQRDMULH(acc, m)          (acc * m + 2^30) >> 31, the doubling multiplication of the reference
  y = VQRDMULH(t, p)            (t * p + 2^30) >> 31

All channels of a layer have one mode. s is at least 1, except where `exact` and `shifted` state it:

  exact    p = unit + 1, if it rounds the halves of all channels as the reference does; 2^31 - 1 if s is 0: it keeps
           every |t| <= 2^30
  lowered  p = unit, after a negative t is lowered by one, t + (t >> 31): for all t, in two more instructions
  single   p = unit for layers that round once; t is VQDMULH, without rounding
  shifted  p = -s, for any s. If p is above 0, a shift to the left comes before the first multiplication. Else a shift
           to the right (VRSHL) replaces the second; if s is not 0, a negative t is lowered by one before it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stages.backends.kernels.rounding import is_zero, turns_halves
from stages.ir.layers import ROUNDINGS, Rounding
from stages.support.lazy import np, npt

_BITS = 31
Mode = Literal["exact", "lowered", "single", "shifted"]


@dataclass(frozen=True)
class Requantization:
    """Mode of a layer and the `rounders` p of its channels, int32."""

    mode: Mode
    rounders: npt.NDArray[np.int32]


def requantization(
    multiplier: npt.NDArray[np.int32],
    shift: npt.NDArray[np.int32],
    size: npt.NDArray[np.int64],
    rounding: Rounding,
    *,
    lowered: bool = False,
    shifted: bool = False,
) -> Requantization:
    """Return the requantization of accumulators with |acc| <= size.

    `lowered` prefers the mode lowered, `shifted` permits the mode shifted.
    """
    s = np.where(multiplier == 0, 1, -shift.astype(np.int64))
    largest = ((size * multiplier.astype(np.int64)) >> 31) + 1
    if s.min() < 1:
        return _of_any_shift(s, size, largest, rounding, exact=not lowered, shifted=shifted)
    dead = is_zero(largest, s)
    mode: Mode = "single"
    if ROUNDINGS[rounding].is_double:
        exact = (dead | turns_halves(largest, s, _BITS)).all()
        mode = "exact" if exact and not lowered else "lowered"
    p = np.where(dead, 0, (np.int64(1) << (_BITS - s)) + (mode == "exact"))
    return Requantization(mode, p.astype(np.int32))


def _of_any_shift(
    s: npt.NDArray[np.int64],
    size: npt.NDArray[np.int64],
    largest: npt.NDArray[np.int64],
    rounding: Rounding,
    *,
    exact: bool,
    shifted: bool,
) -> Requantization:
    """Return the requantization if an s is below 1."""
    channel = int(np.argmin(s))
    refused = ValueError(f"channel {channel} has shift {-int(s[channel])}; this kernel needs -1 or less")
    if not ROUNDINGS[rounding].is_double:
        raise refused
    if exact and s.min() == 0:
        above = np.maximum(s, 1)
        dead = is_zero(largest, above) & (s > 0)
        kept = (s == 0) & (largest <= np.int64(1) << 30)
        if (dead | kept | (s > 0) & turns_halves(largest, above, _BITS)).all():
            p = np.where(s == 0, (np.int64(1) << _BITS) - 1, (np.int64(1) << (_BITS - above)) + 1)
            return Requantization("exact", np.where(dead, 0, p).astype(np.int32))
    if not shifted or (size >= np.int64(1) << (_BITS - np.maximum(-s, 0))).any():
        raise refused
    return Requantization("shifted", (-s).astype(np.int32))
