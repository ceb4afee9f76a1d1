"""Regions of its output that a pad fills: the gaps around its copy."""

from dataclasses import dataclass
from math import prod

from stages.backends.kernels.copies import Copy
from stages.backends.kernels.tir.strides import Axis


@dataclass(frozen=True)
class Fill:
    """Runs of `extent` elements of the output: the first element, and the axes of the runs."""

    offset: int
    extent: int
    axes: tuple[Axis, ...]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return prod(axis.extent for axis in self.axes)


def fills(copy: Copy, elements: int, run_cost: float, element_cost: float) -> list[Fill]:
    """Return the fills of a pad around its copy, or one of all `elements` if that is cheaper.

    There is a gap after each row of the copy, another after each plane, and so on:

        | before | row | gap | row | gap of planes | row | gap | row | after |
    """
    gaps = [_one_fill(0, copy.target_offset)]
    covered = 1
    for depth in reversed(range(len(copy.axes))):
        axis = copy.axes[depth]
        gap = axis.strides[0] - covered
        rows = Axis(axis.extent - 1, axis.strides[:1])
        outer = tuple(Axis(other.extent, other.strides[:1]) for other in copy.axes[:depth])
        if gap > 0 and rows.extent > 0:
            gaps.append(Fill(copy.target_offset + covered, gap, (*outer, rows)))
        covered += rows.extent * axis.strides[0]
    end = copy.target_offset + 1 + sum((axis.extent - 1) * axis.strides[0] for axis in copy.axes)
    gaps.append(_one_fill(end, elements - end))
    around = [fill for fill in gaps if fill.extent > 0]
    cost = sum(fill.runs * (run_cost + element_cost * fill.extent) for fill in around)
    return around if cost < run_cost + element_cost * elements else [_one_fill(0, elements)]


def _one_fill(offset: int, extent: int) -> Fill:
    return Fill(offset, extent, (Axis(1, (extent,)),))
