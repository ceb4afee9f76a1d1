"""Transposed convolutions as convolutions with stride 1, one for each phase.

Along an axis, tap k of input i adds to output o = i * stride - pad + k. With o + pad = m * stride + r, phase r,

    y[m, r] = sum over t of x[m - t] * w[r + t * stride]

so each phase has about taps / stride taps, slides over the input by one, and its outputs are `stride` apart:

    stride 2, 3 taps   m     0     1     2        phase 0: x[m] * w[0] + x[m - 1] * w[2]
                       r    0 1   0 1   0 1       phase 1: x[m] * w[1]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stages.ir.arrays import Array
from stages.support.lazy import np


@dataclass(frozen=True)
class PhaseAxis:
    """One axis of a transposed convolution: `size` inputs, `out` outputs, first `pad` dropped."""

    size: int
    out: int
    taps: int
    stride: int
    pad: int

    @classmethod
    def of(cls, size: int, out: int, taps: int, stride: int) -> PhaseAxis:
        """Return the axis with TFLite's padding: half of the excess, rounded down."""
        return cls(size, out, taps, stride, max(0, (size - 1) * stride + taps - out) // 2)

    @property
    def first(self) -> int:
        """m of the first output."""
        return self.pad // self.stride

    @property
    def count(self) -> int:
        """Outputs of each phase; the first and the last may be dropped."""
        return (self.pad + self.out - 1) // self.stride - self.first + 1

    @property
    def begin(self) -> int:
        """Position of the first output in the interleaved phases."""
        return self.pad - self.first * self.stride

    @property
    def most_taps(self) -> int:
        """Taps of the phase with the most."""
        return -(-self.taps // self.stride)

    def phase_taps(self, phase: int) -> int:
        """Return the taps of a phase, at least 1: a phase without taps gets one of weight 0."""
        return max(1, -(-(self.taps - phase) // self.stride))

    def padding(self, taps: int) -> tuple[int, int]:
        """Return the padding of a window of `taps` before and after the input."""
        return taps - 1 - self.first, self.first + self.count - self.size

    @property
    def trimmed(self) -> tuple[int, int]:
        """Outputs dropped before and after the span of inputs and taps.

        The second is negative if there are more outputs than the span has.
        """
        return self.pad, (self.size - 1) * self.stride + self.taps - self.out - self.pad

    def taps_of(self, phase: int, taps: int) -> list[int]:
        """Return the full kernel's tap for each tap of a phase's window; -1: none."""
        full_taps = (phase + (taps - 1 - place) * self.stride for place in range(taps))
        return [tap if tap < self.taps else -1 for tap in full_taps]


def phase_weights(weights: Array, rows: list[int], columns: list[int], fill: Any) -> Array:
    """Return the weights OHWI of one phase, `fill` where a tap is -1."""
    channels, _, _, depth = weights.shape
    selected = np.full((channels, len(rows), len(columns), depth), fill, dtype=weights.dtype)
    for to_row, row in enumerate(rows):
        for to_column, column in enumerate(columns):
            if row >= 0 and column >= 0:
                selected[:, to_row, to_column] = weights[:, row, column]
    return selected
