"""MAX_POOL_2D of any number of channels."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel
from stages.backends.riscv.kernels.rvp.base import LANE
from stages.backends.riscv.kernels.rvp.pooling import FIELDS, Pool2d

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.kernels.kernel import Lowering
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView

LONG = {8: 28, 4: 32}  # by register: of so many units pixels are copied as runs (SHORT in copies_image.h)


class MaxPoolLines(Kernel):
    """Rows of pixels as long vectors: the largest of a window's rows, then of 2, 4, ... columns along that."""

    name = "rvp.max_pool_lines"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"max_pool2d"})
    sources = ("pool_lines.c",)
    headers: ClassVar[tuple[str, ...]] = ("pool_lines.h",)
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_beside(view) or not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return Pool2d().pack(view, params)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvp.pool_lines_tir import pool_lines

        register = target.word_bits // 8
        line = line_bytes(view, register)
        lines = "lane_lines" if _by_lanes(view, register) else lines_of(view, register)
        function = f"rvp_max_{lines}_{SUFFIX[view.inputs[0].dtype]}"
        return pool_lines(view, function, FIELDS, line, scratch_bytes(view, register))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        register = target.word_bits // 8
        whole = view.outputs[0].shape[3] % register == 0
        if whole or _by_lanes(view, register):
            return _whole_pixels(view, register if whole else LANE)
        return _any_pixels(view, register)


def _by_lanes(view: LayerView, register: int) -> bool:
    """Whether pixels that are no whole registers go lane by lane (RV64)."""
    is_whole = view.outputs[0].shape[3] % register == LANE % register > 0
    return is_whole and _whole_pixels(view, LANE) < _any_pixels(view, register)


def _row(view: LayerView, word: int) -> float:
    """Of a word of a line 7.25 instructions for three rows of a window, and for each two more; 5.25 for one or two.

    A row of the output takes 120.
    """
    rows, (_, _, width, channels) = view.op.kernel[0], view.inputs[0].shape
    each = 7.25 * ((rows - 1) // 2) + (5.25 if rows == 1 or rows % 2 == 0 else 0)
    return width * channels / word * each + 120


def _whole_pixels(view: LayerView, word: int) -> float:
    """A pass takes 5 for a word of pixels that are whole words, the last one for results alone (_last_pass).

    Windows of more than three columns fill what lies beside a row each time, as passes change it.
    """
    op, (_, _, width, channels), (batch, out_height, out_width, _) = (
        view.op,
        view.inputs[0].shape,
        view.outputs[0].shape,
    )
    columns, pixel = (out_width - 1) * op.stride[1] + op.kernel[1], channels / word
    read = (columns - (2 << n) + 1 for n in range(_passes(op.kernel[1])))  # by each pass
    filled = (90 + 1.5 * (columns - width) * pixel) if op.kernel[1] > 3 else 0
    row = _row(view, word) + filled + sum(12 + 5 * count * pixel for count in read)
    return float(100 + batch * out_height * (row + _last_pass(view, word)))


def _any_pixels(view: LayerView, register: int) -> float:
    """A pass takes 8 for a register, four at a time, a copy of one 6; a pixel that is picked 5, its units 2 each."""
    op = view.op
    (_, height, width, channels), (batch, out_height, out_width, _) = view.inputs[0].shape, view.outputs[0].shape
    line, kernel = width * channels / register, op.kernel[1]
    results = ceil(((out_width - 1) * op.stride[1] + 1) * channels / register) + 1
    left = (max(kernel - (2 << n), 0) for n in range((kernel - 1).bit_length()))  # columns that later passes add
    row = (
        (50 if kernel > 1 else 0)
        + _row(view, register)
        + sum(20 + 32 * ceil((results + ceil(n * channels / register)) / 4) for n in left)
    )
    if op.stride[1] == 1:
        row += out_width * channels / register * 6
    else:
        row += out_width * (5 + 2 * channels / (4 if channels % 4 == 0 else 1))
    copied = 0 if width * channels % register == 0 else height * (line * 6 + 60)
    return float(100 + batch * (out_height * row + copied))


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
