"""How the direct convolution chooses its tiles, and what fully connected rows weigh."""

from __future__ import annotations

import pytest

from stages.base import StageError
from stages.kernels.rvp.fully_connected import FullyConnectedRows
from stages.kernels.rvp.quad_lines import QuadLines
from stages.kernels.rvp.tiling import DirectParams, Tiling
from stages.targets.load import load_target
from tests.conformance.draw import Draw
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.fully_connected import fully_connected
from tests.conformance.operators.windows import Window, around


def test_tiles_are_the_cheapest_that_parameters_leave_free() -> None:
    """32 rows are four tiles of 8 at least; a 1x7 window has taps along columns only, 17 of which take four tiles."""
    square = conv2d(Draw(1), around((3, 3), (1, 1), (32, 32), Draw(1)), 16, 16)
    assert Tiling.of(square, DirectParams(), 2).tiles() == [8, 8, 8, 8]
    assert Tiling.of(square, DirectParams(axis="columns"), 2).axis == "columns"
    assert Tiling.of(square, DirectParams(rows=9), 2).tiles() == [9, 9, 9, 5]
    flat = conv2d(Draw(1), around((1, 7), (1, 1), (17, 17), Draw(1)), 16, 16)
    assert Tiling.of(flat, DirectParams(), 2).axis == "columns"
    assert len(Tiling.of(flat, DirectParams(), 2).tiles()) == 4
    assert Tiling.of(flat, DirectParams(rows=9), 2).tiles() == [5, 5, 5, 2], "no function for more than 5"
    with pytest.raises(StageError, match="no tiles along the rows for a window of 1x7"):
        Tiling.of(flat, DirectParams(axis="rows"), 2)


@pytest.mark.parametrize(
    ("width", "channels", "stride", "phases", "chunks"),
    [(96, 3, 2, 2, 3), (32, 1, 2, 2, 2), (32, 2, 2, 1, 2), (96, 3, 1, 0, 3), (33, 3, 2, 0, 3), (32, 4, 2, 0, 3)],
)
def test_rows_of_few_channels_are_copied_as_chunks(
    width: int, channels: int, stride: int, phases: int, chunks: int
) -> None:
    """Not where windows begin at more than two places, rows end within a chunk, or pixels are chunks themselves."""
    layer = conv2d(Draw(1), Window((16, width), (3, 3), (stride, stride), (0, 0, 1, 1)), channels, 16)
    for lanes in (1, 2):
        tiling = Tiling.of(layer, DirectParams(axis="rows"), lanes)
        assert (tiling.shape.phases, tiling.shape.kernel_columns) == (phases, chunks)
        columns = [column * tiling.shape.column_stride for column in range(tiling.strip_columns(lanes))]
        unit = 4 if phases else 1
        begins = [first + left for first in columns for left in (range(4) if phases else (0,))]
        assert max(begins) // unit - min(begins) // unit + chunks <= tiling.shape.strip_width(len(columns))


def test_weights_of_rows_are_padded_along_the_depth_alone() -> None:
    layer = fully_connected(Draw(1), 1, 13, 5, weight_type=("int8", 0))
    for target, padded in (("rv64-rvp", 16), ("rv32-rvp", 16)):
        packed = FullyConnectedRows().pack_for(layer, None, load_target(target))
        assert packed["weights"].nbytes == 5 * padded
        assert packed["params"].nbytes == 2 * 48


@pytest.mark.parametrize(
    ("image", "kernel", "stride", "split"),
    [
        ((32, 30), 5, 1, (14, 0, 0)),
        ((1, 60), 1, 1, (0, 8, 0)),
        ((16, 16), 3, 2, (4, 0, 0)),
        ((5, 5), 3, 1, (0, 0, 0)),
    ],
)
def test_lanes_share_rows_or_columns_of_a_convolution_of_one_channel_or_leave_small_ones_to_one(
    image: tuple[int, int], kernel: int, stride: int, split: tuple[int, int, int]
) -> None:
    """Each lane's lines are copied, so that what both compute has to be worth that."""
    window = Window(image, (min(kernel, image[0]), kernel), (stride, stride))
    layer = conv2d(Draw(1), window, 1, 1)
    assert QuadLines.of(layer, 2).split == split
    assert QuadLines.of(layer, 1).split == (0, 0, 0)
