"""Geometry of two broadcast tensors for elementwise.S."""

from stages.backends.kernels.tir.strides import broadcast
from stages.ir.graph import LayerView

VECTOR = 8  # elements
GEOMETRY = ("rows", "whole", "rest", "row0", "row1", "repeat")  # of elementwise.S


def geometry(view: LayerView, first: int) -> dict[str, int]:
    """Return the geometry fields of two inputs; x0 is input number `first`."""
    axes = broadcast(view, first)
    vectors, rest = divmod(axes.run.extent, VECTOR)
    repeat = {(1, 1): 0, (0, 1): 1, (1, 0): 2}[axes.run.strides[1], axes.run.strides[2]]
    element_bytes = view.outputs[0].bytes // view.outputs[0].elements
    row0, row1 = (stride * element_bytes for stride in axes.rows.strides[1:])
    values = (axes.rows.extent, vectors, rest, row0, row1, repeat)
    return dict(zip(GEOMETRY, values, strict=True))


def why_not_geometry(view: LayerView) -> str:
    """Return why rows cannot be computed, '' if they can.

    An input must have the order of the output.
    """
    steps = broadcast(view).run.strides[1:]
    return "" if steps in ((1, 1), (0, 1), (1, 0)) else "an input has another element order than the output"
