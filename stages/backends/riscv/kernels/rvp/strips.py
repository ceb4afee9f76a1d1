"""Depthwise convolution in strips of four columns: weights and positions."""

from functools import partial
from math import prod

from stages.backends.kernels.eight_bit import centred_weights, why_not_sums
from stages.backends.riscv.kernels.rvp.base import (
    Arithmetic,
    arithmetic,
    clip_word,
    is_bounded,
    one_rounding_of,
    rounds_once,
)
from stages.ir.graph import LayerView


def layer_arithmetic(view: LayerView) -> Arithmetic:
    """Return the layer's constants with weights as [channels, (ky, kx)].

    uint8 activations stay unsigned.
    """
    return arithmetic(view, signed_activations=False)


STRIP_ROW = {1: 4 * 39, 2: 4 * 46}  # instructions of the kernel for a row of a strip, by stride
ROW_PIXEL = {1: 52, 2: 71}  # instructions of a pixel by rows, by stride
GEOMETRY_FIELDS = 14  # int32 fields of the C structure rvp_depthwise_geometry


def why_not_arithmetic(view: LayerView, *, any_shift: bool = False) -> str:
    """Return why the kernels cannot multiply and round the layer's constants, '' if they can."""
    constants = partial(arithmetic, view, signed_activations=False, any_shift=any_shift)
    if bad := why_not_sums(prod(view.op.kernel), constants):
        return bad
    if is_split(view) and view.inputs[0].dtype == "int8":
        return "weights minus their zero point do not fit int8"
    if centred_weights(view).max() > 2 * 127:
        return "a weight minus its zero point is 255, which is not the sum of two int8"
    return ""


def is_split(view: LayerView) -> bool:
    """Return whether weights minus their zero point do not fit int8."""
    taps = centred_weights(view)
    return bool(taps.min() < -128 or taps.max() > 127)


def swapped(view: LayerView) -> bool:
    """Return whether strips run along the image rows, four rows wide, where columns waste more."""
    _, height, width, _ = view.outputs[0].shape
    return bool(_work(width, height) < _work(height, width))


def by_rows(view: LayerView, lanes: int) -> bool:
    """Return whether depthwise3x3_rows_s8.S computes the layer.

    It computes images of few rows without padding above and below.
    """
    top, left, bottom, right = view.op.padding
    if top or bottom or max(left, right) > 1 or view.op.out_channels % (4 * lanes):
        return False
    return rows_cost(view, lanes) < strips_cost(view, lanes)


def rows_cost(view: LayerView, lanes: int) -> float:
    """Return the instructions by rows.

    100 per call, 35 per group, 75 per row of a group, and those of its pixels.
    """
    _, out_rows, out_columns, channels = view.outputs[0].shape
    groups = channels // (4 * lanes)
    more = 24 * is_split(view) + 7 * is_bounded(view) + 7 * (not rounds_once(view))
    row = 75 + out_columns * (ROW_PIXEL[view.op.stride[0]] + more)
    return float(100 * (1 if rounds_once(view) else groups) + groups * (35 + out_rows * row))


def strips_cost(view: LayerView, lanes: int) -> float:
    """Return the instructions in strips.

    110 per group, 480 per strip plus its rows, 500 per layer. Kernel, input and output of a strip take 13 % less
    together than alone. A row of a strip takes 10 less where its four registers are rounded once. The last strip counts
    its existing columns only.
    """
    stride, channels = view.op.stride[0], view.op.out_channels
    _, _, out_rows, out_columns = extents(view, exchanged=swapped(view))
    half = half_columns(view, lanes, out_columns)
    columns = half or out_columns
    strips = -(-columns // 4)
    come, go = ((1 + (half > 0)) * pixels for pixels in pixel_costs(channels, lanes))
    row = 0.87 * (STRIP_ROW[stride] + go * columns / (4 * strips) + come * stride * stride) + (
        72 if is_split(view) else 0
    )
    row -= 10 if rounds_once(view) else 0
    return float(500 + -(-channels // (4 * lanes)) * (110 + strips * (out_rows * row + 480)))


def _work(rows: int, columns: int) -> int:
    """Return the relative cost of the strips, in sixths of a row.

    Each strip costs one extra row and loads one extra tile.
    """
    return -(-columns // 4) * 6 * (rows + 1) + rows


def extents(view: LayerView, *, exchanged: bool) -> tuple[int, int, int, int]:
    """Return rows and columns of input and output along the strips.

    `exchanged`: strips run along the rows.
    """
    _, rows, columns, _ = view.inputs[0].shape
    _, out_rows, out_columns, _ = view.outputs[0].shape
    return (columns, rows, out_columns, out_rows) if exchanged else (rows, columns, out_rows, out_columns)


def group_channels(channels: int, lanes: int) -> list[list[int]]:
    """Return the channels of each group; an incomplete last group overlaps the one before it."""
    size = min(4 * lanes, channels)
    firsts = [min(first, channels - size) for first in range(0, channels, 4 * lanes)]
    return [list(range(first, first + size)) for first in firsts]


def block_channels(view: LayerView, lanes: int) -> int:
    """Return the channels of a block.

    A group, or all channels of a layer by rows that are all rounded once.
    """
    in_rows = by_rows(view, lanes) and one_rounding_of(view, layer_arithmetic(view)).everywhere
    return int(view.op.out_channels if in_rows else min(4 * lanes, view.op.out_channels))


def half_columns(view: LayerView, lanes: int, out_columns: int) -> int:
    """Return the first output column of the upper lanes, 0 if they have separate channels.

    Layers of up to four channels use the upper lanes of RV64 for the second half of the columns, if the saved strip
    costs more than the extra columns.
    """
    if lanes == 1 or view.op.out_channels > 4 or out_columns <= 4:
        return 0
    whole, half, stride = -(-out_columns // 4), -(-out_columns // 8), view.op.stride[0]
    come, go = pixel_costs(view.op.out_channels, lanes)
    moved = come * stride * stride + go
    return 4 * half if half * (STRIP_ROW[stride] + 2 * moved) < whole * (STRIP_ROW[stride] + moved) else 0


def twice(channels: int) -> list[list[int]]:
    """Return up to four channels as a group in each lane, filled up with the last channel."""
    few = [min(channel, channels - 1) for channel in range(4)]
    return [few * 2]


def pixel_costs(channels: int, lanes: int) -> tuple[int, int]:
    """Return the instructions that load and that store four pixels of a group."""
    if channels % (4 * lanes) == 0:
        return 32, 28
    if channels < 4:
        return 28 + 8 * channels, 28 + 12 * channels
    size = min(4 * lanes, channels)
    return (68, 36) if channels % 4 == 0 else (87 + 4 * size, 24 + 8 * size)


def geometry(view: LayerView, lanes: int, *, exchanged: bool) -> tuple[int, ...]:
    """Return the fields of rvp_depthwise_geometry, in order.

    `exchanged`: strips run along the rows.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    channels = op.out_channels
    rows, columns, out_rows, out_columns = extents(view, exchanged=exchanged)
    steps = (x.shape[2] * channels, channels)
    out_steps = (y.shape[2] * channels, channels)
    padding = op.padding[:2]
    if exchanged:
        steps, out_steps, padding = steps[::-1], out_steps[::-1], padding[::-1]
    group = block_channels(view, lanes)
    tail = (op.input_zero_point, clip_word(view), group, half_columns(view, lanes, out_columns))
    return (rows, columns, *steps, out_rows, out_columns, *out_steps, *padding, *tail)


def scratch_bytes(view: LayerView, lanes: int) -> int:
    """Return the scratch of depthwise.c: two input strips, one of results, two registers.

    The second strip is needed from five columns on; otherwise its first word lies behind the first strip's. By rows, it
    is the line of depthwise3x3_rows_s8.S.
    """
    stride: int = view.op.stride[0]
    if by_rows(view, lanes):
        return int(4 * lanes * (3 - stride + (1 + stride) * view.outputs[0].shape[2]))
    _, _, out_rows, out_columns = extents(view, exchanged=swapped(view))
    strip = ((out_rows - 1) * stride + 3) * 4 * (1 + stride)
    more = strip if (half_columns(view, lanes, out_columns) or out_columns) > 4 else stride
    return 4 * lanes * (2 + 4 * out_rows + strip + more)
