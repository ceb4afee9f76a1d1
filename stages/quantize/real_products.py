"""Fixed-point scaling of sums, equal to the rounded float64 product of LiteRT.

LiteRT's FULLY_CONNECTED multiplies its sums by a real number in float64 and rounds halves away from zero. Kernels
compute (sum * multiplier + 2^(30 - shift)) >> (31 - shift), which differs where the real product is nearly a half.
A layer has at most 255 breakpoints: sums from which on the result is the next number. Each bounds the multiplier
from below and from above. If no 32-bit multiplier is within all bounds, the breakpoints themselves are stored, as
`steps` (stages/ir/layers/rounding.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN, round_half_away
from stages.ir.arrays import Array
from stages.quantize.arithmetic import LIMITS, Fixed

STEPS = 256  # number of 8-bit results
_SMALLEST, _LARGEST = 1 << 30, (1 << 31) - 1  # of a multiplier that is not 0
_WIDE = 1 << 47  # of sums of int16 inputs


def sums(weights: Array, bias: Array | None, dtype: str, input_zero_point: int, weight_zero_point: int) -> Array:
    """Return the lowest and highest sum of each unit, int64[2, units].

    weights is [units, depth]. Inputs are of `dtype`.
    """
    low, high = (limit - input_zero_point for limit in LIMITS[dtype])
    taps = weights.astype(np.int64) - weight_zero_point
    ends = np.stack([np.minimum(taps * low, taps * high).sum(axis=1), np.maximum(taps * low, taps * high).sum(axis=1)])
    return ends if bias is None else ends + bias.astype(np.int64)


@dataclass(frozen=True)
class Product:
    """Sums from `least` to `most` times `real`, with results clamped to `low` and `high`."""

    real: float
    least: int
    most: int
    low: int
    high: int

    def exact(self, fixed: Fixed) -> Fixed | None:
        """Return `fixed`, or the nearest multiplier of its shift that is exact for all sums.

        None if there is none.
        """
        multiplier, shift = fixed
        if multiplier == 0:
            return fixed
        smallest, largest = self._bounds(31 - shift)
        if smallest > largest:
            return None
        return min(max(multiplier, smallest), largest), shift

    def steps(self) -> Array:
        """Breakpoints of these sums, int32[256], as `by_steps` reads them."""
        lowest = int(np.clip(round_half_away(np.array(self.least * self.real)), self.low, self.high))
        results = range(lowest + 1, self.high + 1)
        steps = np.full(STEPS, INT32_MAX, np.int64)  # INT32_MAX: unreachable
        steps[0] = lowest
        steps[1 : 1 + len(results)] = np.minimum(np.array(self._firsts(results)) - 1, INT32_MAX)
        return steps.astype(np.int32)

    def _bounds(self, bits: int) -> tuple[int, int]:
        """Bounds of the exact multipliers, empty if there is none.

        Exact: (sum * multiplier + 2^(bits - 1)) >> bits gives each result.
        """
        smallest, largest = _SMALLEST, _LARGEST
        results = range(self.low + 1, self.high + 1)
        for result, first in zip(results, self._firsts(results), strict=True):
            needed = (result << bits) - (1 << bits - 1)  # of sum * multiplier for this result
            if first <= self.most:
                at = max(first, self.least)  # is `result` at least: at * multiplier >= needed
                if at > 0:
                    smallest = max(smallest, -(-needed // at))
                elif at < 0:
                    largest = min(largest, needed // at)
            if first > self.least:
                below = min(first - 1, self.most)  # is less: below * multiplier < needed
                if below > 0:
                    largest = min(largest, (needed - 1) // below)
                elif below < 0:
                    smallest = max(smallest, -((needed - 1) // -below))
        return smallest, largest

    def _firsts(self, results: range) -> list[int]:
        """For each result the first sum, at most one beyond `most`, that gives it or a larger one."""
        wanted = np.array(results, np.int64)
        guess = np.clip(np.ceil((wanted - 0.5) / self.real), self.least - 2, self.most + 2).astype(np.int64)
        around = guess[:, None] + np.arange(-1, 2)
        reached = round_half_away(around * np.float64(self.real)) >= wanted[:, None]
        return [int(value) for value in np.where(reached.any(axis=1), around[:, 0] + reached.argmax(axis=1), guess + 2)]


def exact_multipliers(
    fixed: Sequence[Fixed], reals: Sequence[float], ends: Array, low: int, high: int
) -> list[Fixed] | None:
    """Multiplier and shift of each unit, exact for its sums.

    fixed      the units' real multipliers, rounded
    ends       their lowest and highest sums, [2, units]
    low, high  bounds of the clamp, without the zero point

    Units with the same real multiplier share a fixed one if it is exact for all of them: kernels are faster then. None
    if a unit has no exact multiplier.
    """
    units: dict[float, list[int]] = {}
    for unit, real in enumerate(reals):
        units.setdefault(real, []).append(unit)
    result = list(fixed)
    for real, members in units.items():
        common = _product(real, ends[:, members], low, high).exact(fixed[members[0]])
        for unit in members:
            exact = common or _product(real, ends[:, [unit]], low, high).exact(fixed[unit])
            if exact is None:
                return None
            result[unit] = exact
    return result


def overflowing(reals: Sequence[float], ends: Array, zero_point: int, dtype: str) -> int | None:
    """First unit with a sum whose result, with the zero point, exceeds int32; else None.

    `ends` as in `exact_multipliers`. LiteRT converts such results unchecked, and from float64 the value depends on the
    machine. Sums of int16 inputs (`dtype`) have 64 bits and do not wrap. Those of more than 48 bits count as
    overflowing too, since LiteRT's product with a multiplier exceeds 64 bits.
    """
    for unit, real in enumerate(reals):
        if dtype == "int16":
            sums = ends[:, unit].tolist()
        else:
            product = _product(real, ends[:, [unit]], 0, 0)
            sums = [product.least, product.most]
        results = [result for end in sums for result in (end * real, end * real + zero_point)]
        if min(results) < INT32_MIN or max(results) > INT32_MAX or max(map(abs, sums)) >= _WIDE:
            return unit
    return None


def _product(real: float, ends: Array, low: int, high: int) -> Product:
    """Product of a unit; sums that leave int32 wrap, and may then be any."""
    least, most = int(ends[0].min()), int(ends[1].max())
    wraps = least < INT32_MIN or most > INT32_MAX
    return Product(real, INT32_MIN if wraps else least, INT32_MAX if wraps else most, low, high)


def breakpoint_tables(reals: Sequence[float], low: int, high: int) -> dict[str, Array]:
    """Constants `steps` and `step_rows` of units with these real multipliers.

    `steps` has a row for each distinct multiplier.
    """
    rows = {real: row for row, real in enumerate(dict.fromkeys(reals))}
    steps = np.stack([Product(real, INT32_MIN, INT32_MAX, low, high).steps() for real in rows])
    return {"steps": steps, "step_rows": np.array([rows[real] for real in reals], np.int32)}
