"""MAX_POOL_2D of any number of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.kernels.kernel import Kernel
from stages.kernels.rvp.pooling import FIELDS, Pool2d

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

LONG = {8: 28, 4: 32}  # by register: of so many units pixels are copied as runs (SHORT in copies_image.h)


class MaxPoolLines(Kernel):
    """Rows of pixels as long vectors: the largest of a window's rows, then of 2, 4, ... columns along that."""

    name = "rvp.max_pool_lines"
    ops: ClassVar[frozenset[str]] = frozenset({"max_pool2d"})
    sources = ("pool_lines.c",)
    headers: ClassVar[tuple[str, ...]] = ("pool_lines.h",)
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_beside(view) or not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return Pool2d().pack(view, params)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.rvp.pool_lines_tir import pool_lines

        register = target.word_bits // 8
        line = line_bytes(view, register)
        function = f"rvp_max_{lines_of(view, register)}_{SUFFIX[view.inputs[0].dtype]}"
        return pool_lines(view, function, FIELDS, line, scratch_bytes(view, register))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Of a register of a line 1.75 instructions for a row, 2 around, 8 for a pass; 6 for one that is copied.

        Where pixels are whole registers a pass takes 5, the last one for results alone (_last_pass). Else a pixel that
        is picked takes 5 and 2 for each of its units. A row of the output takes 120.
        """
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        register = target.word_bits // 8
        (_, height, width, channels), (batch, out_height, out_width, _) = x.shape, y.shape
        line = width * channels / register
        row = line * (2 + 1.75 * op.kernel[0]) + 120
        if channels % register == 0:
            return batch * out_height * (row + 5 * line * _passes(op.kernel[1]) + _last_pass(view, register))
        row += 8 * line * (op.kernel[1] - 1).bit_length()
        if op.stride[1] == 1:
            row += out_width * channels / register * 6
        else:
            row += out_width * (5 + 2 * channels / (4 if channels % 4 == 0 else 1))
        copied = 0 if width * channels % register == 0 else height * (line * 6 + 60)
        return batch * (out_height * row + copied)


def _passes(columns: int) -> int:
    """Passes that take twice the columns of the one before, up to a third of all."""
    return next(n for n in range(32) if 3 << n >= columns)


def _last_pass(view: LayerView, register: int) -> float:
    """Instructions for a row of results that are whole registers: 5 or, of three windows, 7 for each.

    Results that are neighbours are one group, else pixels are, which take 12; up to three registers at the end of each
    take 3 more.
    """
    columns, (_, _, out_width, channels) = view.op.kernel[1], view.outputs[0].shape
    is_run = view.op.stride[1] == 1 or out_width == 1
    if is_run and columns == 1:
        return 0
    groups, count = (1, out_width * channels // register) if is_run else (out_width, channels // register)
    each = 7 if 2 << _passes(columns) < columns else 5
    return groups * (12 + each * count + 3 * (count % 4))


def why_not_beside(view: LayerView) -> str:
    """Why lines do not do, '' if all windows have some of the image."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    for axis in range(2):
        before, size = op.padding[axis], x.shape[1 + axis]
        last = (y.shape[1 + axis] - 1) * op.stride[axis] - before
        if before >= op.kernel[axis] or last >= size:
            return "a window lies beside the image"
    return ""


def lines_of(view: LayerView, register: int) -> str:
    """Which entry pool_lines.c has for a layer: of whole registers, or by how pixels of a line are picked."""
    channels = view.outputs[0].shape[3]
    if channels % register == 0:
        return "whole_lines"
    unit = next(size for size in (4, 2, 1) if channels % size == 0)
    if view.op.stride[1] == 1 or (unit < 4 and channels // unit >= LONG[register]):
        return "lines"
    return f"lines_{unit}"


def line_bytes(view: LayerView, register: int) -> int:
    """Of a line with what windows have beside the image, and what passes read behind it."""
    op, (_, _, width, channels) = view.op, view.inputs[0].shape
    columns = (view.outputs[0].shape[2] - 1) * op.stride[1] + op.kernel[1]
    there = max(columns, op.padding[1] + width) + op.kernel[1]
    return _whole(there * channels + 8 * register, register)


def scratch_bytes(view: LayerView, register: int) -> int:
    """Of the line, of rows that are copied, and to align them."""
    _, _, width, channels = view.inputs[0].shape
    return line_bytes(view, register) + view.op.kernel[0] * _whole(width * channels, register) + register


def _whole(count: int, register: int) -> int:
    return -(-count // register) * register
