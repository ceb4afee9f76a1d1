"""Sizes of the matrix products of RVV: rows, blocks of columns, gathered windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.backends.kernels.matrix import WINDOWS, depth_of, has_windows, pixels_of, windows_of
from stages.backends.kernels.structure import Structure
from stages.backends.tiles.matrix_product import FIELDS as GEMM_FIELDS
from stages.ir.operators.products import Conv2D, FullyConnected

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView

FIELDS = Structure("rvv_gemm", GEMM_FIELDS)
GATHERED = Structure("rvv_windows", (*WINDOWS, "fill", "flip", "row"))
_GATHERED_BYTES = 2048  # of gathered rows, if a tile takes less


def has_dot(view: LayerView, target: Target) -> bool:
    """Return whether products are computed four at a time."""
    return "zvdot4a8i" in target.extensions and weight_zero_point(view) == 0


def width_of(lmul: int, target: Target) -> int:
    """Return the columns of a block."""
    return int(target.vlen or 0) // 32 * lmul


def row_of(view: LayerView, target: Target) -> int:
    """Return the elements of a row: the depth, filled up to whole steps."""
    return -(-depth_of(view) // 4) * 4 if has_dot(view, target) else depth_of(view)


def reads_in_place(view: LayerView, target: Target) -> bool:
    """Return whether rows are read from the input."""
    whole = row_of(view, target) == depth_of(view)
    return not has_windows(view) and whole and view.inputs[0].dtype == "int8"


def images(view: LayerView, target: Target) -> tuple[int, int]:
    """Return the number of products and the rows of each."""
    if isinstance(view.op, FullyConnected):
        return 1, int(view.op.batch)
    batch, height, width, _ = view.outputs[0].shape
    return (1, batch * height * width) if reads_in_place(view, target) else (batch, height * width)


def rows_at_a_time(view: LayerView, height: int, target: Target) -> int:
    """Return the rows of a call of the product."""
    rows = images(view, target)[1]
    if reads_in_place(view, target):
        return rows
    return min(rows, max(1, _GATHERED_BYTES // row_of(view, target) // height) * height)


def windows_fields(view: LayerView, target: Target) -> dict[str, int]:
    """Return the fields of rvv_windows."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    windows = windows_of(view) if isinstance(op, Conv2D) else pixels_of(op.batch, op.depth)
    return windows | {"fill": op.input_zero_point - offset, "flip": offset, "row": row_of(view, target)}
