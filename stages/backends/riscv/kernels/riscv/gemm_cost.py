"""Instruction model of `gemm.c`, fitted to counts on the calibration grid."""

from dataclasses import dataclass

from stages.backends.riscv.kernels.riscv.rows import ROWS, Rows
from stages.backends.riscv.kernels.riscv.windows import fields_of, reads_in_place
from stages.ir.graph import LayerView
from stages.support.lazy import np

SEGMENT = 64  # products that are added up on 64 bits before sums are taken apart


@dataclass(frozen=True)
class _Prices:
    """Instructions per tile, packed element, panel element, panel segment and result.

    A result without a ReLU, or of an incomplete tile, takes `straight` more.
    """

    tile: float
    packed: float
    element: float
    segment: float
    result: float
    straight: float


_PRICES = {32: _Prices(245, 18, 24, 0, 18.4, 8.6), 64: _Prices(60, 20, 43.4, 300, 11, 9.8)}
# For a run of taps, for a row of the windows in a plane, and for a tile of windows.
_RUN, _ROW, _WINDOWS = 115, 15, 130


def gemm_cost(view: LayerView, words: Rows) -> float:
    """Return the instructions of tiles, row packing, panels and results."""
    out, op, price = view.outputs[0], view.op, _PRICES[words.word_bits]
    pixels, columns = out.shape[1] * out.shape[2], op.out_channels // op.groups
    panels = words.whole_columns(columns) // words.panel
    products = panels * (price.element * words.depth + price.segment * -(-words.depth // SEGMENT))
    result = price.result + (price.straight if op.act_min < op.output_zero_point or pixels < ROWS else 0)
    tiles = -(-pixels // ROWS)
    tile_cost = price.tile + price.packed * words.depth + products + result * columns * min(ROWS, pixels)
    return float(out.shape[0] * op.groups * (tiles * tile_cost + _windows(view, tiles)))


def _windows(view: LayerView, tiles: int) -> float:
    """Return the instructions that locate the windows of an image."""
    if reads_in_place(view):
        return 0
    fields = fields_of(view)
    runs = _runs(fields, view.outputs[0].shape[1] * view.outputs[0].shape[2])
    return float(tiles * _WINDOWS + fields["planes"] * fields["kernel_height"] * (tiles * _ROW + runs * _RUN))


def _runs(fields: dict[str, int], pixels: int) -> int:
    """Return the runs of taps that the tiles of an image pack per window row.

    A window row inside the image is one run. Otherwise, each tap is a run.
    """
    width = fields["kernel_width"]
    first = np.minimum(np.arange(0, pixels, ROWS), max(pixels - ROWS, 0))
    if fields["dilation_x"] != 1 or fields["pixel"] != fields["channels"]:
        return width * len(first)
    column = (first[:, None] + np.arange(min(ROWS, pixels))) % fields["out_width"]
    left = column * fields["stride_x"] - fields["left"]
    begin = np.maximum(-left, 0).max(axis=1)
    end = np.minimum(fields["width"] - left, width).min(axis=1)
    return int((width + 1 - np.maximum(end - begin, 1)).sum())
