"""Requantization in two vector multiplications, of 31 bits both; stages.kernels.rounding has the proof.

  t = VQRDMULH(acc, m)          (acc * m + 2^30) >> 31, the doubling multiplication of the reference
  y = VQRDMULH(t, p)            (t * p + 2^30) >> 31

The mode is a layer's; s is at least 1 here:

  exact    p = unit + 1, where it turns the halves of all channels
  lowered  p = unit, and a negative t is lowered by one before it, t + (t >> 31): for all t, in two more instructions
  single   p = unit for layers that round once; t is VQDMULH, without rounding
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from stages.kernels.rounding import is_zero, turns_halves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stages.operators.layer import Rounding

_BITS = 31
Mode = Literal["exact", "lowered", "single"]


@dataclass(frozen=True)
class Requantization:
    """The layer's mode, and `rounders` p of its channels, int32."""

    mode: Mode
    rounders: NDArray[np.int32]


def requantization(
    multiplier: NDArray[np.int32],
    shift: NDArray[np.int32],
    size: NDArray[np.int64],
    rounding: Rounding,
    *,
    lowered: bool = False,
) -> Requantization:
    """How to requantize accumulators of |acc| <= size; `lowered` prefers that mode.

    Raises ValueError, naming the channel, where a shift is above -1.
    """
    s = np.where(multiplier == 0, 1, -shift.astype(np.int64))
    if s.min() < 1:
        channel = int(np.argmin(s))
        raise ValueError(f"channel {channel} has shift {int(shift[channel])}; this kernel needs -1 or less")
    largest = ((size * multiplier.astype(np.int64)) >> 31) + 1
    dead = is_zero(largest, s)
    mode: Mode = "single"
    if rounding == "double":
        exact = (dead | turns_halves(largest, s, _BITS)).all()
        mode = "exact" if exact and not lowered else "lowered"
    p = np.where(dead, 0, (np.int64(1) << (_BITS - s)) + (mode == "exact"))
    return Requantization(mode, p.astype(np.int32))
