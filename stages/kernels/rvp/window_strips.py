"""Strips for windows of any height and up to five columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.kernels.rvp.strips import GEOMETRY_FIELDS, extents, is_split

if TYPE_CHECKING:
    from stages.graph import LayerView


WINDOW_FIELDS = GEOMETRY_FIELDS + 4  # int32 fields of the C structure rvp_depthwise_window
MAX_COLUMNS = 5  # with three more for the outputs beside the first they are two words


def orders(view: LayerView) -> list[bool]:
    """The directions in which strips can run: False for strips of columns, True for strips of rows."""
    op = view.op
    return [bool(axis == 0) for axis in (1, 0) if op.kernel[axis] <= MAX_COLUMNS and op.stride[axis] in (1, 2)]


def swapped(view: LayerView) -> bool:
    """Whether strips run along the rows of the image: where they must, or take less."""
    return min(orders(view), key=lambda exchanged: strips_cost(view, exchanged, 1, whole=True))


def window(view: LayerView) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and columns of the window, and the strides along them, as the strips see them."""
    kernel, stride = view.op.kernel, view.op.stride
    return (kernel[::-1], stride[::-1]) if swapped(view) else (kernel, stride)


def starts(stride: int, columns: int) -> tuple[int, ...]:
    """For each word of weights of a row, in order: the column of the word's first byte, counted from the window's.

    Negative where zeros come first. depthwise_window.c draws them.
    """
    if stride == 1:
        return (0, -1, -2, -3, 1, 2, 3, 4)[: 3 + columns_class(columns)]
    return (0, -2, 2, 4)[: min(columns_class(columns), 4)]


def columns_class(columns: int) -> int:
    """Columns of the windows that the C function is made for: 2, 3 or 5."""
    return next(most for most in (2, 3, 5) if columns <= most)


def strips_cost(view: LayerView, exchanged: bool, lanes: int, *, whole: bool) -> float:
    """Instructions for the strips of a group of channels.

    Four times, for each channel of a lane: products and loads of each row of the window, 22 for a row of outputs, 30
    for four rows (or what is left). A row of a strip comes in with 36 for four columns, one goes
    out with 27; byte by byte it is 105 and 85 for each lane. 350 are around a strip.
    """
    op = view.op
    at = 0 if exchanged else 1
    rows, columns, row_stride, stride = op.kernel[1 - at], op.kernel[at], op.stride[1 - at], op.stride[at]
    _, _, out_rows, out_columns = extents(view, exchanged=exchanged)
    words, most = len(starts(stride, columns)), columns_class(columns)
    products, loads = (words, 2) if stride == 1 else (2 * words, 2 if most == 2 else 3)
    together = -(-out_rows // 4) if row_stride == stride else out_rows
    window_row = out_rows * (products + loads) + together * (words + 3)
    computed = rows * (1 + is_split(view)) * window_row + 22 * out_rows + 30 * together
    come, go = (36, 27) if whole else (105 * lanes, 85 * lanes)
    in_rows = (out_rows - 1) * row_stride + rows
    return float(-(-out_columns // 4) * (4 * computed + out_rows * go + in_rows * stride * come + 350))


def scratch_bytes(view: LayerView, lanes: int) -> int:
    """Two strips of input, one of results, two registers: what depthwise_strips.h uses."""
    (kernel_rows, _), (row_stride, stride) = window(view)
    _, _, out_rows, _ = extents(view, exchanged=swapped(view))
    rows = (out_rows - 1) * row_stride + kernel_rows
    return 4 * lanes * (2 + 4 * out_rows + 2 * rows * 4 * (1 + stride))
