"""Rows of a tensor along time, and which of them the next run can reuse.

A run moves the window by `frames`. A tensor with one row per `stride` frames moves by frames / stride rows:

    row          0 ..... a ................ b-step ..... b ..... count
    last run     padding |   clean rows                  | padding
    this run     padding |   = rows a+step .. b  | new   | padding

A clean row depends on frames only, so row i is row i + step of the last run. Rows with padding are computed in each
run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Range = tuple[int, int]  # rows, the second excluded


@dataclass(frozen=True)
class Rows:
    """The time axis of a tensor.

    axis    in the tensor's shape
    unit    elements of a row along this axis: more than 1 if the axis also contains axes after time
    count   number of rows
    stride  frames of the input from one row to the next
    clean   rows that depend on frames only, not on padding or on their position
    """

    axis: int
    unit: int
    count: int
    stride: int
    clean: Range

    def step(self, frames: int) -> int:
        """Return the rows that the tensor moves per run; 0 if the stride does not divide `frames`."""
        return 0 if frames % self.stride else frames // self.stride

    def reusable(self, frames: int) -> int:
        """Return the number of rows that a run reuses."""
        step = self.step(frames)
        return max(0, self.clean[1] - self.clean[0] - step) if step else 0

    def shape(self, shape: Sequence[int], rows: int) -> tuple[int, ...]:
        """Return the tensor's shape with another number of rows."""
        return (*shape[: self.axis], rows * self.unit, *shape[self.axis + 1 :])


@dataclass(frozen=True)
class Pieces:
    """The rows of a tensor that a run has; empty ranges are (0, 0).

    head   rows with padding before the window, computed in each run
    kept   rows from the last run
    fresh  new rows and those with padding after the window, computed in each run; they follow `kept`
    """

    head: Range
    kept: Range
    fresh: Range

    @property
    def computed(self) -> list[Range]:
        """The ranges that operators compute."""
        return [part for part in (self.head, self.fresh) if part[0] < part[1]]


def pieces(rows: Rows, frames: int, demands: Sequence[Range]) -> Pieces:
    """Return the rows to compute and to keep, so that all ranges of `demands` are available."""
    (begin, end), step = rows.clean, rows.step(frames)
    new = end - step
    last = max(stop for _, stop in demands)
    heads = [(start, min(stop, begin)) for start, stop in demands if start < begin]
    head = (min(start for start, _ in heads), max(stop for _, stop in heads)) if heads else (0, 0)
    kept = [max(start, begin) for start, stop in demands if start < new and stop > begin]
    if kept:
        return Pieces(head, (min(kept), new), (new, max(end, last)))
    fresh = [start for start, stop in demands if stop > new]
    return Pieces(head, (0, 0), (min(fresh), last) if fresh else (0, 0))
