"""Depthwise layers of MVE with channels in the lanes: what vectors read, what is one row, which weights meet."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from stages.graph import LayerView
from stages.kernels import registry
from stages.kernels.mve.lanes import GROUP, MOST_LINES, Lanes, Part, lanes_of, packed
from stages.kernels.mve.walk import walks
from tests.conformance.draw import Draw
from tests.conformance.operators.depthwise_conv2d import depthwise
from tests.conformance.operators.windows import Window
from tests.support.emitted import target_named

SIZES = ((1, 1), (1, 5), (4, 1), (3, 4), (6, 7), (9, 20))
KERNELS = ((1, 1), (1, 2), (2, 1), (3, 3))
PADDINGS = ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 0, 0), (1, 0, 0, 0))


def layer(window: Window, channels: int, dtype: str = "int8", **fields: object) -> LayerView:
    return depthwise(Draw(channels, dtype), window, channels, **fields)


def reads(lanes: Lanes, part: Part) -> tuple[int, int]:
    """The first byte that a part's vectors read, and the one behind the last: of the image, or of a band's lines."""
    fields, walk = lanes.fields(part), lanes.walk
    rows = fields["band"] or fields["rows"]
    at, channels = (0, min(part.channels, GROUP)) if fields["by_group"] else (part.first, part.channels)
    starts = [at, at + max(channels - part.lanes, 0)]
    steps = (fields["x_row"] + fields["columns"] * fields["x_step"], fields["x_step"])
    ends = product((0, rows - 1), (0, walk.columns - 1), (0, *lanes.offsets[: lanes.taps - 1]), starts)
    first = [y * steps[0] + x * steps[1] + tap + start for y, x, tap, start in ends]
    return min(first), max(first) + part.lanes


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7, 12, 15, 16, 19, 33, 200])
def test_vectors_read_nothing_outside(channels: int, dtype: str) -> None:
    seen = set()
    for size, kernel, padding, stride in product(SIZES, KERNELS, PADDINGS, (1, 2, 3)):
        window = Window(size, kernel, (stride, stride), padding)
        if min(window.out) < 1 or any(0 < padding[i] >= kernel[i % 2] for i in range(4)):
            continue
        lanes = lanes_of(layer(window, channels, dtype), "exact")
        room = size[0] * size[1] * channels if lanes.in_place else lanes.scratch
        for part in lanes.parts:
            first, behind = reads(lanes, part)
            assert first >= 0 and behind <= room, (window, part)
        seen.add(lanes.in_place)
    assert seen == ({True, False} if dtype == "int8" else {False})


@pytest.mark.parametrize(("rows", "expected"), [(2, False), (3, True)])
def test_few_channels_are_read_in_place_where_a_pixel_follows(rows: int, expected: bool) -> None:
    """Vectors of four read a byte of the pixel behind; of the last row of three none is the last of a window."""
    lanes = lanes_of(layer(Window((rows, 3), (2, 1), (2, 2)), 3), "exact")
    assert lanes.in_place is expected
    behind = max(reads(lanes, part)[1] for part in lanes.parts)
    assert behind <= (rows * 9 if expected else lanes.scratch)


def test_a_column_and_pixels_are_rows() -> None:
    (column, *_) = walks(layer(Window((9, 1), (3, 1), padding=(1, 0, 1, 0)), 16))
    assert (column.size, column.out, column.kernel, column.before) == ((1, 9), (1, 9), (1, 3), (0, 1))
    pixels = lanes_of(layer(Window((5, 5)), 36), "exact")
    assert pixels.in_place and pixels.walk.size == (1, 25)
    below = lanes_of(layer(Window((6, 4), (3, 1), padding=(1, 0, 1, 0), dilation=(1, 1)), 32), "exact").walk
    assert (below.size, below.out, below.kernel, below.dilation, below.before) == (
        *((1, 24), (1, 24)),
        *((1, 3), (1, 4), (0, 4)),
    )


@pytest.mark.parametrize(
    ("channels", "columns", "repeat"), [(8, 6, 2), (8, 7, 7), (8, 17, 1), (3, 100, 10), (16, 6, 1)]
)
def test_outputs_of_few_channels_fill_vectors(channels: int, columns: int, repeat: int) -> None:
    """As many as divide a row, have at most 128 channels, and leave few lanes empty."""
    lanes = lanes_of(layer(Window((4, columns + 1), (2, 2)), channels), "exact")
    assert lanes.walk.repeat == repeat


@pytest.mark.parametrize(("columns", "expected"), [(MOST_LINES // 64 - 1, False), (MOST_LINES // 64, True)])
def test_long_lines_are_loaded_by_group(columns: int, expected: bool) -> None:
    """Two lines of a column more than outputs, 32 channels each."""
    window = Window((9, columns), (2, 2), padding=(0, 1, 0, 0))
    lanes = lanes_of(layer(window, 32), "exact")
    assert lanes.by_group is (columns * 64 + 64 > MOST_LINES) is expected
    assert lanes.scratch <= MOST_LINES + 16


def test_numbers_of_a_group_are_where_narrowing_puts_them() -> None:
    params = np.arange(60).reshape(3, 20)
    weights = np.arange(40).reshape(20, 2)
    made = packed(params, weights, Part(0, 20, 16), 20)
    assert made[1, :8].tolist() == [4, 8, 12, 16, 5, 9, 13, 17]
    assert made[1, 48:].view(np.int8).tolist() == [*range(8, 40, 2), *range(9, 41, 2)]
    quads = packed(params, weights, Part(16, 4, 4), 20)
    assert quads[0, :12].tolist() == [16, 17, 18, 19, 36, 37, 38, 39, 56, 57, 58, 59]
    some = packed(params[:, :3], weights[:3], Part(0, 3, 16), 3)
    assert some[0, :16].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("kernel", "lowest", "reason"),
    [
        ((1, 2), (0, 1), True),
        ((2, 2), (1, 2), False),
        ((2, 2), (2, 3), True),
        ((1, 3), (0, 1), False),
        ((1, 3), (1, 2), True),
        ((1, 1), (0,), False),
    ],
)
def test_two_weights_that_meet_are_not_both_lowest(
    kernel: tuple[int, int], lowest: tuple[int, ...], reason: bool
) -> None:
    """Products of two taps are added in int16; an odd number begins with one alone."""
    weights = np.zeros((1, *kernel, 20), np.int8)
    weights.reshape(-1, 20)[list(lowest), 17] = -128
    view = layer(Window((5, 5), kernel), 20, weights=weights, weight_type=("int8", 0))
    target = target_named("cortex-m55")
    kernels = registry.kernels(target.kernels)
    assert kernels["mve.depthwise_s8"].why_not(view, target).startswith("two weights of -128 meet") is reason
    assert kernels["mve.depthwise_wide_s8"].why_not(view, target) == ""
