"""Replace two roundings by one multiplication if no possible sum shows a difference.

The reference is a step function: the output is at least zero_point + u from the sum T[u] on. One smmul.u, with offsets
added to the sum and to the product, is a step function too:

  ((acc + d) * m + 2^31) >> 32 >= u + b   where   acc + d >= (u + b - 1/2) * 2^32 / m

Both are equal if 0 <= T[u] + d - (u + b - 1/2) * 2^32 / m < 1 for each step u within the layer's bounds and the
channel's sums. For m near the scale times 2^32, the values of d that satisfy this are an interval of a few hundredths.
It moves by 2^32 / m with b, which is not an integer. So among some hundred b, one has an integer d in its interval.

The reference rounds halves away from zero, which shifts the steps of negative u. The search therefore succeeds where
the bounds leave few steps or steps of one sign, as with a ReLU.
"""

from __future__ import annotations

from dataclasses import dataclass

from stages.backends.kernels.eight_bit import Range
from stages.ir.layers import ROUNDINGS, Rounding
from stages.support.lazy import np, npt

_OFFSETS = sorted(range(-2048, 2049), key=abs)  # how far b is looked for
_MOST_SHIFT = 20  # from 24 on the last of its steps, (2u - 1) << (s - 1) << 31, leaves int64
_NEAR = (-2, -1, 0, 1, 2)  # how far m is looked for


@dataclass(frozen=True)
class OneRounding:
    """Replacement of two roundings, int64 [channels].

    multiplier  m in [0, 2^31); -1 where the channel has none
    bias        d, added to the channel's bias
    zero_point  added to the product: the output's zero point (int8), less b
    """

    multiplier: npt.NDArray[np.int64]
    bias: npt.NDArray[np.int64]
    zero_point: npt.NDArray[np.int64]

    def part(self, channels: slice) -> OneRounding:
        """Return the replacement of some channels."""
        return OneRounding(self.multiplier[channels], self.bias[channels], self.zero_point[channels])

    @property
    def everywhere(self) -> bool:
        """Whether all channels have a single rounding."""
        return bool((self.multiplier >= 0).all())


def steps(
    multiplier: npt.NDArray[np.int64], s: npt.NDArray[np.int64], u: npt.NDArray[np.int64], rounding: Rounding
) -> npt.NDArray[np.int64]:
    """Return the smallest sums that round to each `u` or more, int64 [channels, steps].

    Requires multiplier > 0 and s in [1, 20]. Rounded twice, (acc * m + 2^30) >> 31 is (2u - 1) * 2^(s - 1) or more, and
    one more where that half is negative.
    """
    half = (2 * u - 1) << (s[:, None] - 1)
    if ROUNDINGS[rounding].is_single:
        return -(-(half << 31) // multiplier[:, None])
    return -(((np.int64(1) << 30) - ((half + (u <= 0)) << 31)) // multiplier[:, None])


def one_rounding(
    multiplier: npt.NDArray[np.int32],
    shift: npt.NDArray[np.int32],
    acc: Range,
    zero_point: int,
    bounds: tuple[int, int],
    rounding: Rounding,
) -> OneRounding:
    """Return the single rounding of each channel, for int8 zero point and bounds."""
    s = -shift.astype(np.int64)
    usable = (multiplier > 0) & (s >= 1) & (s <= _MOST_SHIFT)
    m, s = np.where(usable, multiplier, 1).astype(np.int64), np.where(usable, s, 1)
    u = np.arange(bounds[0] + 1, bounds[1] + 1) - zero_point
    t = steps(m, s, u, rounding)
    matters = (t > acc.low[:, None]) & (t <= acc.high[:, None])
    constant = np.where(multiplier == 0, np.clip(zero_point, *bounds), bounds[0] + (t <= acc.low[:, None]).sum(1))
    is_constant = (multiplier == 0) | (usable & ~matters.any(1))
    result = OneRounding(
        np.where(is_constant, 0, -1), np.zeros_like(m), np.where(is_constant, constant, zero_point).astype(np.int64)
    )
    near = np.maximum(np.rint(np.ldexp(m.astype(np.float64), 1 - s)) + np.array(_NEAR)[:, None], 1)
    real = (u - 0.5) * 2.0**32 / near[..., None] - t
    first = np.where(matters, real, np.inf).min(2, initial=np.inf)
    last = np.where(matters, real, -np.inf).max(2, initial=-np.inf)
    windows = 1 - (last - first)
    offered = np.array(_OFFSETS)
    for channel in np.flatnonzero(usable & ~is_constant):
        low, high = int(acc.low[channel]), int(acc.high[channel])
        for i in np.argsort(-windows[:, channel], kind="stable"):
            candidate = int(near[i, channel])
            offsets = _offsets(offered, candidate, float(last[i, channel]), float(windows[i, channel]))
            if offsets and _is_exact(candidate, *offsets, t[channel], u, (low, high), zero_point):
                result.multiplier[channel], result.bias[channel] = candidate, offsets[0]
                result.zero_point[channel] = zero_point - offsets[1]
                break
    return result


def _offsets(offered: npt.NDArray[np.int64], m: int, last: float, window: float) -> tuple[int, int] | None:
    """Return d and the smallest b of those offered whose window holds d, if any."""
    ends = last + offered * (2.0**32 / m)
    d = np.ceil(ends)
    fitting = d - ends < window
    index = int(fitting.argmax())
    return (int(d[index]), int(offered[index])) if fitting[index] else None


def _is_exact(
    m: int, d: int, b: int, t: npt.NDArray[np.int64], u: npt.NDArray[np.int64], acc: tuple[int, int], zero_point: int
) -> bool:
    """Return whether the steps are `t` for all sums in `acc`, in 32-bit or 16-bit arithmetic."""
    low, high = acc
    ends = [((sum_ + d) * m + (1 << 31)) >> 32 for sum_ in acc]
    words = [value for end in ends for value in (end, end + zero_point - b)]
    if low + d < -(1 << 31) or high + d >= 1 << 31 or min(words) < -(1 << 15) or max(words) >= 1 << 15 or m >= 1 << 31:
        return False
    begins = -(-((2 * (u + b) - 1) << 31) // m) - d
    return bool((np.clip(begins, low, high + 1) == np.clip(t, low, high + 1)).all())
