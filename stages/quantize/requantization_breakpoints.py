"""Fixed-point multipliers equal to the float32 scaling of ONNX Runtime's integer operators.

QLinearConv and its like convert the sum to float32, multiply it by one float32 and round to the nearest integer, halves
to even. The result is monotonic in the sum, with at most 255 breakpoints between the sums that a channel can have. A
multiplier is exact if its breakpoints are the same; each bounds it from below and from above. Both roundings of
stages.ir.layers.rounding are tried. Bounds may contradict each other, since float32 rounds products that are nearly a
half.
"""

from collections.abc import Sequence

import numpy as np

from stages.ir.arrays import Array
from stages.ir.layers import ROUNDINGS, Rounding
from stages.quantize.arithmetic import Fixed, quantize_multiplier
from stages.quantize.operator import Operator

_SMALLEST, _LARGEST = 1 << 30, (1 << 31) - 1
_INT32 = 2**31
_ROUNDINGS: tuple[Rounding, ...] = ("double", "single")


def scaled(sums: Array, scale: Array) -> Array:
    """ONNX Runtime's results for `sums`, without the zero point, int64; `scale` is float32."""
    with np.errstate(over="ignore"):
        real = sums.astype(np.float32) * scale
    return np.rint(np.clip(real, -(2.0**30), 2.0**30)).astype(np.int64)


def exact(
    scales: Array, ends: Array, fixed: Sequence[Fixed], low: int, high: int
) -> tuple[Rounding, list[Fixed]] | None:
    """A rounding, and each channel's multiplier and shift, equal to `scaled` for every sum.

    scales     float32 of each channel
    ends       its lowest and its highest sum, int64[2, channels], within int32
    fixed      its nearest multiplier and shift
    low, high  bounds of the clamp, without the zero point

    None if a channel has no such multiplier in either rounding.
    """
    first = _breakpoints(scales, ends, low, high)
    for rounding in _ROUNDINGS:
        candidates = [
            _exact_multiplier(first[channel], ends[:, channel], nearest, rounding, low)
            for channel, nearest in enumerate(fixed)
        ]
        multipliers = [nearest for nearest in candidates if nearest is not None]
        if len(multipliers) == len(candidates):
            return rounding, multipliers
    return None


def requantization(
    operator: Operator, reals: Sequence[float], scales: Array, ends: Array, low: int, high: int
) -> tuple[Rounding, list[Fixed]]:
    """Rounding of a layer's sums, and multiplier and shift of each channel.

    reals: the real multipliers; the other arguments as in `exact`. Exact if the sums are of integers and such a
    multiplier exists. Else the nearest one: rounded once, or twice if the recipe asks for it for sums of real numbers.
    Raises OperatorError for scales that are out of range.
    """
    fixed = [quantize_multiplier(real) for real in reals]
    too_large = max(shift for _, shift in fixed)
    if too_large > 30:
        raise operator.error(f"would scale its sums up by 2^{too_large}; check the scales of its tensors")
    if operator.rule.get("sums") == "integer" and np.abs(ends).max() < _INT32:
        solution = exact(scales, ends, fixed, low, high)
        if solution is not None:
            return solution
    largest = (np.abs(ends).max(axis=0) * np.array(reals)).max()
    if largest >= _INT32 - 256:
        raise operator.error(f"would scale its sums to {largest:.3g}, beyond int32; check the scales of its tensors")
    return "double" if operator.rule.get("twice") and operator.rule.get("sums") == "float" else "single", fixed


def _breakpoints(scales: Array, ends: Array, low: int, high: int) -> Array:
    """First sum that gives each result from low + 1 on, or one beyond the last sum.

    Shape [channels, results].
    """
    results = np.arange(low + 1, high + 1)
    below = np.repeat(ends[0][:, None] - 1, len(results), axis=1)  # gives less
    above = np.repeat(ends[1][:, None] + 1, len(results), axis=1)  # gives as much, or is beyond the last
    while (above - below > 1).any():
        middle = (below + above) // 2
        reached = scaled(middle, scales[:, None]) >= results
        above, below = np.where(reached, middle, above), np.where(reached, below, middle)
    breakpoints: Array = above
    return breakpoints


def _exact_multiplier(first: Array, ends: Array, fixed: Fixed, rounding: str, low: int) -> Fixed | None:
    """Multiplier nearest to `fixed` with the breakpoints `first`; None if there is none."""
    multiplier, shift = fixed
    if multiplier == 0 or shift > 0 or shift < -22:
        return fixed if multiplier == 0 and (first > ends[1]).sum() + (first <= ends[0]).sum() == len(first) else None
    results = np.arange(low + 1, low + 1 + len(first), dtype=np.int64)
    needed = _needed(results, shift, rounding)  # of sum * multiplier for this result
    smallest, largest = _SMALLEST, _LARGEST
    for at, reaches in ((first, True), (first - 1, False)):
        inside = (at >= ends[0]) & (at <= ends[1])
        sums, bounds = at[inside], needed[inside]
        up, down = sums > 0, sums < 0
        if ((sums == 0) & ((bounds <= 0) != reaches)).any():
            return None
        if reaches:  # sum * multiplier >= needed
            smallest = max(smallest, int((-(-bounds[up] // sums[up])).max(initial=smallest)))
            largest = min(largest, int((bounds[down] // sums[down]).min(initial=largest)))
        else:  # sum * multiplier < needed
            largest = min(largest, int(((bounds[up] - 1) // sums[up]).min(initial=largest)))
            smallest = max(smallest, int((-((bounds[down] - 1) // -sums[down])).max(initial=smallest)))
    return None if smallest > largest else (min(max(multiplier, smallest), largest), shift)


def _needed(results: Array, shift: int, rounding: str) -> Array:
    """Least product of sum and multiplier that gives each result or more."""
    if ROUNDINGS[rounding].is_single:
        bits = 31 - shift
        return (results << bits) - (1 << bits - 1)
    right = -shift
    if right == 0:
        return (results << 31) - (1 << 30)
    # Halves round away from zero: below zero they give the lower result.
    high = (results << right) - (1 << right - 1) + (results <= 0)
    return (high << 31) - (1 << 30)
