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
        function = f"rvp_max_lines_{SUFFIX[view.inputs[0].dtype]}"
        return pool_lines(view, function, FIELDS, line, scratch_bytes(view, register))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Of a register of a line 1.75 instructions for a row, 2 around, 4 or 8 for a pass; 6 for one that is copied.

        A pixel that is picked takes 5 and 2 for each of its words, a row of the output 120.
        """
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        register = target.word_bits // 8
        (_, height, width, channels), (batch, out_height, out_width, _) = x.shape, y.shape
        line = width * channels / register
        is_whole = channels % register == 0
        passes = (op.kernel[1] - 1).bit_length()
        row = line * (2 + 1.75 * op.kernel[0] + passes * (4 if is_whole else 8)) + 120
        if op.stride[1] == 1:
            row += 0 if is_whole else out_width * channels / register * 6
        else:
            row += out_width * (5 + 2 * channels / (register if is_whole else 4 if channels % 4 == 0 else 1))
        copied = 0 if width * channels % register == 0 else height * (line * 6 + 60)
        return batch * (out_height * row + copied)


def why_not_beside(view: LayerView) -> str:
    """Why lines do not do, '' if all windows have some of the image."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    for axis in range(2):
        before, size = op.padding[axis], x.shape[1 + axis]
        last = (y.shape[1 + axis] - 1) * op.stride[axis] - before
        if before >= op.kernel[axis] or last >= size:
            return "a window lies beside the image"
    return ""


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
