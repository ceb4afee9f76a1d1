"""Requantization in two vector multiplications, and when it is exact.

The reference scales an accumulator by m * 2^(-31 - s) (`stages.graph.ops`; s = -shift, at least 1 here):

  t = VQRDMULH(acc, m)          (acc * m + 2^30) >> 31, the doubling multiplication of the reference
  y = VQRDMULH(t, p)            (t * p + 2^30) >> 31

Rounding `double` wants t / 2^s with halves away from zero. Mode by mode, for a layer as a whole:

  exact    p = 2^(31 - s) + 1: the product is t too far from zero, in units of 2^-31: that turns a negative half away
           from zero, and moves nothing else while |t| < 2^(31 - s), because t * 2^(31 - s) is a multiple of 2^(31 - s).
           For s <= 11 a larger |t| is at least 2^(s + 9): the result is clipped, whatever its last bit
  lowered  p = 2^(31 - s), and a negative t is lowered by one before it, t + (t >> 31): for all t, in two more
           instructions

p = 0 where |t| < 2^(s - 1), in channels that died in training: the result is 0.

Rounding `single` takes t without rounding, VQDMULH, (t + 2^(s - 1)) >> s, p = 2^(31 - s): a half is an integer, so that
what t lost below its last bit cannot reach it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stages.graph.ops import Rounding

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
    unit = np.int64(1) << (31 - s)
    dead = largest < np.int64(1) << (s - 1)
    mode: Mode = "single"
    if rounding == "double":
        exact = (dead | (s <= 11) | (largest < unit)).all()
        mode = "exact" if exact and not lowered else "lowered"
    p = np.where(dead, 0, unit + (mode == "exact"))
    return Requantization(mode, p.astype(np.int32))
