"""Axes as files give them: from -rank to rank - 1."""

from __future__ import annotations

from stages.ir.operators.operation import Refused, Shape, listed


def axis_of(axis: int, shape: Shape, *, extra: int = 0) -> int:
    """The axis counted from the front. `extra` is 1 where an axis may be put behind the last one."""
    rank = len(shape) + extra
    if not -rank <= axis < rank:
        raise Refused(f"has the axis {axis}, where the input is {listed(shape)}")
    return axis % rank


def distinct_axes(axes: list[int], shape: Shape) -> list[int]:
    """Axes counted from the front, none twice."""
    found = [axis_of(axis, shape) for axis in axes]
    if len(set(found)) < len(found):
        raise Refused(f"has the axes {listed(axes)}: one of them twice")
    return found
