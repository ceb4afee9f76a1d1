"""Axes as files number them: from -rank to rank - 1."""

from stages.ir.operators.operation import Refused, Shape, listed


def axis_of(axis: int, shape: Shape, *, extra: int = 0) -> int:
    """Return the axis counted from the front.

    `extra` is 1 if the axis may be one after the last. Raises Refused if it is out of range.
    """
    rank = len(shape) + extra
    if not -rank <= axis < rank:
        raise Refused(f"has the axis {axis}, which is out of range for the shape {listed(shape)}")
    return axis % rank


def distinct_axes(axes: list[int], shape: Shape) -> list[int]:
    """Return axes counted from the front. Raises Refused if one occurs twice."""
    normalized = [axis_of(axis, shape) for axis in axes]
    if len(set(normalized)) < len(normalized):
        raise Refused(f"has the axes {listed(axes)}; one occurs twice")
    return normalized
