"""MAX_POOL_2D for any number of channels."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir import pooling
from stages.backends.kernels.tir.block import Function, Operand
from stages.backends.riscv.kernels.rvp.base import LANE
from stages.backends.riscv.kernels.rvp.pooling import FIELDS, Pool2d
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

LONG = {8: 28, 4: 32}  # by register: of so many units pixels are copied as runs (SHORT in copies_image.h)


class MaxPoolLines(Kernel):
    """Max pooling on pixel rows as long vectors.

    Takes the maximum of a window's rows, then of 2, 4, ... columns along the result.
    """

    name = "rvp.max_pool_lines"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"max_pool2d"})
    sources = ("pool_lines.c",)
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_beside(view) or not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return Pool2d().pack(view, params)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        register = target.word_bits // 8
        line = line_bytes(view, register)
        lines = "lane_lines" if _by_lanes(view, register) else lines_of(view, register)
        function = f"rvp_max_{lines}_{SUFFIX[view.inputs[0].dtype]}"
        return pool_lines(view, function, FIELDS, line, scratch_bytes(view, register))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        register = target.word_bits // 8
        aligned = view.outputs[0].shape[3] % register == 0
        if aligned or _by_lanes(view, register):
            return _whole_pixels(view, register if aligned else LANE)
        return _any_pixels(view, register)


def _by_lanes(view: LayerView, register: int) -> bool:
    """Whether pixels that are not whole registers are processed by lanes (RV64)."""
    is_whole = view.outputs[0].shape[3] % register == LANE % register > 0
    return is_whole and _whole_pixels(view, LANE) < _any_pixels(view, register)


def _row(view: LayerView, word: int) -> float:
    """Return the instructions of an output row: 120 plus the instructions per word of a line.

    A word takes 7.25 for three window rows and again per two more; 5.25 for one or two.
    """
    rows, (_, _, width, channels) = view.op.kernel[0], view.inputs[0].shape
    word_cost = 7.25 * ((rows - 1) // 2) + (5.25 if rows == 1 or rows % 2 == 0 else 0)
    return width * channels / word * word_cost + 120


def _whole_pixels(view: LayerView, word: int) -> float:
    """Return the instructions of passes on whole words: 5 per word, the last on results only.

    Windows of more than three columns fill the padding beside a row in each pass (_last_pass).
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
    """Return the instructions of passes on other pixels: 8 per register, four at a time.

    A copied register takes 6, a picked pixel 5 and 2 per unit.
    """
    op = view.op
    (_, height, width, channels), (batch, out_height, out_width, _) = view.inputs[0].shape, view.outputs[0].shape
    line, kernel = width * channels / register, op.kernel[1]
    results = ceil(((out_width - 1) * op.stride[1] + 1) * channels / register) + 1
    added = (max(kernel - (2 << n), 0) for n in range((kernel - 1).bit_length()))  # columns that later passes add
    row = (
        (50 if kernel > 1 else 0)
        + _row(view, register)
        + sum(20 + 32 * ceil((results + ceil(n * channels / register)) / 4) for n in added)
    )
    if op.stride[1] == 1:
        row += out_width * channels / register * 6
    else:
        row += out_width * (5 + 2 * channels / (4 if channels % 4 == 0 else 1))
    copied = 0 if width * channels % register == 0 else height * (line * 6 + 60)
    return float(100 + batch * (out_height * row + copied))


def _passes(columns: int) -> int:
    """Return the passes. Each has twice the columns of the one before, the last up to 3 times."""
    return next(n for n in range(32) if 3 << n >= columns)


def _last_pass(view: LayerView, register: int) -> float:
    """Return the instructions of the last pass on whole registers: 5 each, 7 for three windows.

    Neighbouring results form one group, otherwise each pixel is one. A group takes 12, and 3 for each of up to three
    registers at its end.
    """
    columns, (_, _, out_width, channels) = view.op.kernel[1], view.outputs[0].shape
    is_run = view.op.stride[1] == 1 or out_width == 1
    if is_run and columns == 1:
        return 0
    groups, count = (1, out_width * channels // register) if is_run else (out_width, channels // register)
    register_cost = 7 if 2 << _passes(columns) < columns else 5
    return groups * (12 + register_cost * count + 3 * (count % 4))


def why_not_beside(view: LayerView) -> str:
    """Return why the kernel cannot pool by lines, '' if every window has pixels of the image."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    for axis in range(2):
        before, size = op.padding[axis], x.shape[1 + axis]
        last = (y.shape[1 + axis] - 1) * op.stride[axis] - before
        if before >= op.kernel[axis] or last >= size:
            return "a window lies outside the image"
    return ""


def lines_of(view: LayerView, register: int) -> str:
    """Return pool_lines.c's entry point: for pixels of whole registers, or a smaller unit."""
    channels = view.outputs[0].shape[3]
    if channels % register == 0:
        return "whole_lines"
    unit = next(size for size in (4, 2, 1) if channels % size == 0)
    if view.op.stride[1] == 1 or (unit < 4 and channels // unit >= LONG[register]):
        return "lines"
    return f"lines_{unit}"


def line_bytes(view: LayerView, register: int) -> int:
    """Return the bytes of a line, with padding beside the image and bytes read after it."""
    op, (_, _, width, channels) = view.op, view.inputs[0].shape
    columns = (view.outputs[0].shape[2] - 1) * op.stride[1] + op.kernel[1]
    width_read = max(columns, op.padding[1] + width) + op.kernel[1]
    return _whole(width_read * channels + 8 * register, register)


def scratch_bytes(view: LayerView, register: int) -> int:
    """Return the scratch of the line and of copied rows, with alignment."""
    _, _, width, channels = view.inputs[0].shape
    return line_bytes(view, register) + view.op.kernel[0] * _whole(width * channels, register) + register


def _whole(count: int, register: int) -> int:
    return -(-count // register) * register


def pool_lines(view: LayerView, function: str, fields: int, line_bytes: int, scratch_bytes: int) -> Lowering:
    """Loop over images around `function(x, y, scratch, pool, line_bytes)`."""
    x, y = view.inputs[0], view.outputs[0]
    image = pooling._image(view, function, Operand("pool", (fields,), "int32"), planes=False)
    scratch = Operand("scratch", (scratch_bytes,), "int8", "w")

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.y, b.scratch, b.pool, line_bytes]

    block = replace(image, operands=(*image.operands, scratch), arguments=arguments)
    with Function(view.op.op) as f:
        given, out = f.input(0, x.shape, x.dtype), f.output(0, y.shape, y.dtype)
        constants = {
            "pool": f.constant("pool", (fields,), "int32"),
            "scratch": f.scratch("scratch", (scratch_bytes,), "int8"),
            "acc": f.scratch("acc", (1,), "int32"),
            "count": f.scratch("count", (1,), "int32"),
        }
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(given, n, 0, 0, 0), y=(out, n, 0, 0, 0), **constants)
    return f.lowering()
