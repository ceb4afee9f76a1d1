"""Rows of two operands, as operands.h has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.kernels.tir.strides import broadcast

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.targets.spec import Target

ROWS = ("rows", "count", "step0", "step1", "row0", "row1")


def row_fields(view: LayerView) -> dict[str, int]:
    """The fields of the C structure rvp_rows."""
    found = broadcast(view)
    sizes, steps = (found.rows.extent, found.run.extent), found.run.strides[1:]
    return dict(zip(ROWS, (*sizes, *steps, *found.rows.strides[1:]), strict=True))


def why_not_rows(view: LayerView, target: Target) -> str:
    """Why the kernels cannot walk along rows of registers, '' if they can."""
    register, found = target.word_bits // 8, broadcast(view)
    if not {*found.run.strides[1:]} <= {0, 1}:
        return "an input is read in another order than the output is written"
    around = [axis for axis in (found.rows, *found.outer) if axis.extent > 1]
    if around and found.run.extent % register:
        return f"rows of {found.run.extent} elements are no multiple of {register}"
    stepping = [number for number in (1, 2) if found.run.strides[number]]
    if any(axis.strides[number] % register for axis in around for number in stepping):
        return f"rows of an input begin at no multiple of {register}"
    return ""


def instructions(view: LayerView, target: Target, register: float, row: float = 25) -> float:
    """What `register` of elements and 60 for a call make, with `row` for a row."""
    found = broadcast(view)
    registers = -(-found.run.extent // (target.word_bits // 8))
    return found.calls * (60 + found.rows.extent * (row + register * registers))
