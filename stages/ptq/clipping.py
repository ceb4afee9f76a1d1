"""Ranges that leave out what few values have, so that the others get finer steps.

`percentile` keeps that share of a tensor's values, of the rest half beyond each end. `mse` takes the ends at which the
mean squared error is least: of values inside by rounding, step^2 / 12 for each that is not 0, of those outside by their
distance from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from stages.ptq.observe import Range

BINS = 16_384
USUAL_PERCENTILE = 99.99
_SHRINKS = np.linspace(1.0, 0.02, 99)  # of an end, for `mse`
Counts = npt.NDArray[np.int64]
Clip = Callable[[Range, Counts], Range]


def clipped(seen: Mapping[int, Range], counts: Mapping[int, Counts], clip: Clip) -> dict[int, Range]:
    """The ranges by `clip`, of the histograms `counts` of the values that are not 0 over what was `seen`."""
    return {index: clip(one, counts[index]) if one.low < one.high else one for index, one in seen.items()}


def by_percentile(share: float) -> Clip:
    """Keeps `share` percent of the values."""

    def clip(seen: Range, counts: Counts) -> Range:
        total = int(counts.sum())
        if not total:
            return seen
        edges = np.linspace(seen.low, seen.high, len(counts) + 1)
        below = np.concatenate([[0], np.cumsum(counts)]) / total
        tail = (1 - share / 100) / 2
        low, high = np.interp([tail, 1 - tail], below, edges)
        # Integers hold 0 in any case: what is on one side of it has no end on the other.
        return Range(float(low) if seen.low < 0 else seen.low, float(high) if seen.high > 0 else seen.high)

    return clip


def by_error(bits: int) -> Clip:
    """Takes the ends with the least squared error for integers of so many bits: one end after the other."""

    def clip(seen: Range, counts: Counts) -> Range:
        if not counts.any():
            return seen
        width = (seen.high - seen.low) / len(counts)
        values = seen.low + width * (np.arange(len(counts)) + 0.5)

        def error(low: float, high: float) -> float:
            step = (max(high, 0.0) - min(low, 0.0)) / (2**bits - 1)
            outside = np.maximum(np.maximum(values - high, low - values), 0.0)
            inside = int(counts[outside == 0].sum())
            return float((counts * np.square(outside)).sum() + inside * step**2 / 12)

        high = min((seen.high * shrink for shrink in _SHRINKS), key=lambda end: error(seen.low, end))
        high = high if seen.high > 0 else seen.high
        low = min((seen.low * shrink for shrink in _SHRINKS), key=lambda end: error(end, high))
        return Range(low if seen.low < 0 else seen.low, high)

    return clip
