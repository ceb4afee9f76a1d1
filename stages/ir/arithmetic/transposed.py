"""Transposed convolutions as convolutions: the outputs of one phase are a convolution of the input with stride 1.

Along an axis, tap k of input i adds to output o = i * stride - pad + k. With o + pad = m * stride + r, phase r,

    y[m, r] = sum over t of x[m - t] * w[r + t * stride]

so each phase has about taps / stride taps of its own, slides over the input by one, and its outputs are `stride` apart:

    stride 2, 3 taps   m     0     1     2        phase 0: x[m] * w[0] + x[m - 1] * w[2]
                       r    0 1   0 1   0 1       phase 1: x[m] * w[1]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PhaseAxis:
    """One axis of a transposed convolution: `size` inputs, `out` outputs, the first `pad` of which are left away."""

    size: int
    out: int
    taps: int
    stride: int
    pad: int

    @classmethod
    def of(cls, size: int, out: int, taps: int, stride: int) -> PhaseAxis:
        """With the padding that TFLite takes for these sizes: half of what is too much, rounded down."""
        return cls(size, out, taps, stride, max(0, (size - 1) * stride + taps - out) // 2)

    @property
    def first(self) -> int:
        """m of the first output."""
        return self.pad // self.stride

    @property
    def count(self) -> int:
        """How many outputs each phase has, of which the first and the last may be left away."""
        return (self.pad + self.out - 1) // self.stride - self.first + 1

    @property
    def begin(self) -> int:
        """Where the outputs begin in the phases, interleaved."""
        return self.pad - self.first * self.stride

    @property
    def most_taps(self) -> int:
        return -(-self.taps // self.stride)

    def phase_taps(self, phase: int) -> int:
        """At least 1: a phase without taps is one of weight 0."""
        return max(1, -(-(self.taps - phase) // self.stride))

    def padding(self, taps: int) -> tuple[int, int]:
        """What a window of so many taps pads before and after the input."""
        return taps - 1 - self.first, self.first + self.count - self.size

    @property
    def trimmed(self) -> tuple[int, int]:
        """Outputs left away before and after what inputs and taps span; below 0 where there are more after it."""
        return self.pad, (self.size - 1) * self.stride + self.taps - self.out - self.pad

    def taps_of(self, phase: int, taps: int) -> list[int]:
        """For each tap of a phase's window, in the order of the input, the tap of the whole; -1 for none."""
        found = (phase + (taps - 1 - place) * self.stride for place in range(taps))
        return [tap if tap < self.taps else -1 for tap in found]


def phase_weights(weights: Array, rows: list[int], columns: list[int], fill: Any) -> Array:
    """The weights OHWI of one phase; where a tap is -1 they are `fill`."""
    import numpy as np

    channels, _, _, depth = weights.shape
    made = np.full((channels, len(rows), len(columns), depth), fill, dtype=weights.dtype)
    for place, row in enumerate(rows):
        for beside, column in enumerate(columns):
            if row >= 0 and column >= 0:
                made[:, place, beside] = weights[:, row, column]
    return made
