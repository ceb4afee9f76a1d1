"""Which bytes meet in two tensors that broadcast: rows of the output, along which an input steps or repeats a byte."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from stages.kernels.tir.strides import Axis, broadcast_strides, logical_strides, walk

if TYPE_CHECKING:
    from stages.graph import LayerView

VECTOR = 8  # elements
GEOMETRY = ("rows", "whole", "rest", "row0", "row1", "repeat")  # of elementwise.S


@dataclass(frozen=True)
class Geometry:
    """One call has `row.extent` rows of `run.extent` elements; strides are those of the output, x0 and x1.

    outer  axes around the calls
    """

    outer: tuple[Axis, ...]
    row: Axis
    run: Axis

    @property
    def rows(self) -> int:
        return self.row.extent

    @property
    def calls(self) -> int:
        return prod(axis.extent for axis in self.outer)

    @property
    def fields(self) -> dict[str, int]:
        whole, rest = divmod(self.run.extent, VECTOR)
        repeat = {(1, 1): 0, (0, 1): 1, (1, 0): 2}[self.run.strides[1], self.run.strides[2]]
        values = (self.rows, whole, rest, *self.row.strides[1:], repeat)
        return dict(zip(GEOMETRY, values, strict=True))


def geometry(view: LayerView, first: int) -> Geometry:
    """Of two inputs; x0 is number `first`."""
    out = view.outputs[0]
    inputs = (view.inputs[first], view.inputs[1 - first])
    axes = walk(out.shape, logical_strides(out), *(broadcast_strides(x, out.shape) for x in inputs))
    row = axes[-2] if len(axes) > 1 else Axis(1, (axes[-1].extent, 0, 0))
    return Geometry(tuple(axes[:-2]), row, axes[-1])


def why_not_geometry(view: LayerView) -> str:
    """Why rows cannot be computed: an input lies in another order than the output; '' if they can."""
    steps = geometry(view, 0).run.strides[1:]
    return "" if steps in ((1, 1), (0, 1), (1, 0)) else "an input is read in another order than the output is written"
