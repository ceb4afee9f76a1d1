"""Scales of layers on int16 activations as 64-bit factors, for totals within 32 bits.

    y = (t * scale + 2^63) >> 64

`wide` layers (stages.ir.layers.rounding) have a 15-bit multiplier m and a shift: scale = m * 2^(49 + shift). `real`
layers multiply in float64 and round. For these a factor is searched that gives the same result for every int32. Results
never decrease, so it suffices to compare the first total of each result.
"""

from __future__ import annotations

from functools import cache

from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN, round_half_away, upper_half
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

LOWEST, HIGHEST = -(1 << 15), (1 << 15) - 1


def scales(view: LayerView, channels: int) -> npt.NDArray[np.int64]:
    """Return each channel's factor, int64[channels]. Raise ValueError if a channel has none."""
    if view.op.rounding == "real":
        reals = np.broadcast_to(view.constant("real").reshape(-1), channels)
        return np.array([_of_real(float(real)) for real in reals], np.int64)
    multiplier, shift = (view.constant(role).reshape(-1).astype(np.int64) for role in ("multiplier", "shift"))
    if shift.max() > -1 or shift.min() < -49:
        raise ValueError("a scale outside of 2^-50 to 1/2")
    return np.broadcast_to(upper_half(multiplier) << (49 + shift), channels)


def halves(scale: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return high and low word of each factor, int32[channels, 2]. The low word is signed."""
    low = scale.astype(np.int32).astype(np.int64)
    return np.stack([(scale - low) >> 32, low], axis=1).astype(np.int32)


def scaled(total: npt.NDArray[np.int64], scale: int) -> npt.NDArray[np.int64]:
    """Return (total * scale + 2^63) >> 64 of int32 values."""
    high, low = (int(part) for part in halves(np.array([scale], np.int64))[0])
    return (total * high + ((total * low) >> 32) + (1 << 31)) >> 32


@cache
def _of_real(real: float) -> int:
    """Return the factor of a float64 number. Raise ValueError if none gives the same results."""
    if not 0 < real < 0.5:
        raise ValueError(f"a scale of {real:.6g}; this kernel is for scales below 1/2")
    results = np.arange(LOWEST + 1, HIGHEST + 1)
    guess = np.ceil((results - 0.5) / real).clip(INT32_MIN, INT32_MAX).astype(np.int64)
    around = guess[:, None] + np.arange(-1, 3)
    reached = round_half_away(around * np.float64(real)) >= results[:, None]
    firsts = around[:, 0] + np.where(reached.any(axis=1), reached.argmax(axis=1), 4)
    inside = (firsts >= INT32_MIN) & (firsts <= INT32_MAX)
    before = (firsts > INT32_MIN) & (firsts - 1 <= INT32_MAX)
    for beside in (0, 1, -1):  # 1 turns halves of negative totals away from zero
        factor = round(real * 2**64) + beside
        reaches = scaled(firsts, factor) >= results
        if (reaches | ~inside).all() and ((scaled(firsts - 1, factor) < results) | ~before).all():
            return factor
    raise ValueError(f"no 64-bit factor rounds as the float64 product with {real!r}")
