"""Rows and blocks of columns of layers that are products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.kernels.matrix import WINDOWS, columns_of, depth_of, has_windows, pixels_of, rows_of, windows_of
from stages.kernels.mve.base import arithmetic
from stages.kernels.structure import Structure

if TYPE_CHECKING:
    from stages.graph import LayerView


BLOCK = 4  # output channels of a block
CHUNK = 16  # elements of the depth in a vector
GATHERED = Structure("mve_windows", (*WINDOWS, "fill", "flip", "depth", "row", "weight_zero_point"))  # of gemm.h
FIELDS = ("more", "rest", "x_row", "y_row", "zero_point", "low", "high")  # of gemm.S


def block_starts(columns: int) -> list[int]:
    """The first channel of each block; the last block overlaps the one before where channels are left over."""
    return [*range(0, columns - BLOCK + 1, BLOCK), *([columns - BLOCK] if columns % BLOCK else [])]


def gathers(view: LayerView) -> bool:
    """Whether rows are copied before they are multiplied: windows, another sign, sums for the weights' zero point."""
    return has_windows(view) or view.inputs[0].dtype == "uint8" or weight_zero_point(view) != 0


def row_bytes(view: LayerView) -> int:
    """From a row to the next: gathered rows are padded to whole chunks."""
    depth = depth_of(view)
    return -(-depth // CHUNK) * CHUNK if gathers(view) else depth


def images(view: LayerView) -> tuple[int, int]:
    """How many products there are, and the rows of each. Rows that are read in place need no border between images."""
    if not has_windows(view):
        return 1, rows_of(view)
    batch, height, width, _ = view.outputs[0].shape
    return batch, height * width


def windows_fields(view: LayerView) -> dict[str, int]:
    """The fields of mve_windows."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    windows = windows_of(view) if has_windows(view) else pixels_of(rows_of(view), depth_of(view))
    return windows | {
        "fill": op.input_zero_point - offset,
        "flip": offset,
        "depth": depth_of(view),
        "row": row_bytes(view),
        "weight_zero_point": weight_zero_point(view),
    }


def fields(view: LayerView) -> dict[str, int]:
    """The fields of gemm.S."""
    op, row = view.op, row_bytes(view)
    return {
        "more": max(row // CHUNK - 1, 0),
        "rest": row % CHUNK,
        "x_row": row,
        "y_row": columns_of(view),
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
    }


def function(view: LayerView) -> str:
    """Which function of gemm.S multiplies the layer."""
    row = row_bytes(view)
    depth = "short" if row < CHUNK else "rest" if row % CHUNK else "whole"
    offsets = "_offsets" if weight_zero_point(view) else ""
    return f"mve_gemm_{arithmetic(view).mode}_{depth}{offsets}"
