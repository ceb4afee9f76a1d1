"""Clip rare values from ranges, so that other values get finer steps.

`percentile` keeps that share of a tensor's values and cuts half of the rest at each end. `mse` minimizes the mean
squared error: step^2 / 12 for each nonzero value inside, the squared distance from the end for values outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from stages.ptq.observe import Range

BINS = 16_384
USUAL_PERCENTILE = 99.99
_SHRINK_FACTORS = np.linspace(1.0, 0.02, 99)  # of an end, for `mse`
Counts = npt.NDArray[np.int64]
Clip = Callable[[Range, Counts], Range]


def clipped(seen: Mapping[int, Range], counts: Mapping[int, Counts], clip: Clip) -> dict[int, Range]:
    """Return the ranges of `seen`, clipped with the histograms `counts` of nonzero values."""
    return {
        index: clip(bounds, counts[index]) if bounds.low < bounds.high else bounds for index, bounds in seen.items()
    }


def by_percentile(share: float) -> Clip:
    """Return a clip that keeps `share` percent of the values."""

    def clip(seen: Range, counts: Counts) -> Range:
        total = int(counts.sum())
        if not total:
            return seen
        edges = np.linspace(seen.low, seen.high, len(counts) + 1)
        below = np.concatenate([[0], np.cumsum(counts)]) / total
        tail = (1 - share / 100) / 2
        low, high = np.interp([tail, 1 - tail], below, edges)
        # Integer ranges always include 0: a range on one side of 0 keeps its other end.
        return Range(float(low) if seen.low < 0 else seen.low, float(high) if seen.high > 0 else seen.high)

    return clip


def by_error(bits: int) -> Clip:
    """Return a clip with the least squared error for `bits` bits, one end at a time."""

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

        high = min((seen.high * shrink for shrink in _SHRINK_FACTORS), key=lambda end: error(seen.low, end))
        high = high if seen.high > 0 else seen.high
        low = min((seen.low * shrink for shrink in _SHRINK_FACTORS), key=lambda end: error(end, high))
        return Range(low if seen.low < 0 else seen.low, high)

    return clip
