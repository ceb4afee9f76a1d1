"""Kernels of stages/backends/kernels with the C functions and prices of this family."""

from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.row_sums import RowSums
from stages.backends.kernels.byte_table import ByteTable
from stages.backends.kernels.depthwise16 import Depthwise16, Prices16
from stages.backends.kernels.lanes16 import Lanes
from stages.backends.kernels.lstm import Lstm8
from stages.backends.kernels.plan16 import Tile
from stages.backends.kernels.pool_rows import PoolRows
from stages.backends.kernels.products16 import Products16
from stages.backends.kernels.resize import Resize8
from stages.backends.kernels.softmax import RowSoftmax
from stages.backends.kernels.softmax16 import Softmax16
from stages.backends.kernels.svdf import Svdf8
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class MveDepthwise16(Depthwise16):
    """Depthwise convolution of int16 with VMULLB and VMULLT."""

    name = "mve.depthwise16"
    estimate_error = 1.25
    sources = ("depthwise16.c",)
    function = "mve_depthwise16"
    clips = True
    prices = Prices16(90.0, 40.0, 3.0, 8.0, by_lanes=1.5)

    def lanes(self, target: Target) -> Lanes:
        return Lanes(group=8, taps=1, inner=8, apart=1, outer=0)


class MveLstm(Lstm8):
    """LSTM in vectors: sixteen elements of a row, four gates, eight cells."""

    name = "mve.lstm"
    estimate_error = 1.25
    sources = ("lstm.c",)
    function = "mve_lstm_s8"
    prices = (0.18, 190.0)

    def chunk(self, target: Target) -> int:
        return 16


class MvePoolRows(PoolRows):
    """Pooling by rows, 16 maxima or 8 sums at a time."""

    name = "mve.pool_rows"
    row_alignment = 1
    family = "mve"
    sources = ("pool_rows.c",)
    headers: ClassVar[tuple[str, ...]] = ("mve_pool_rows.h",)
    lanes = (16, 8)
    prices = (2.0, 2.0, 4.0, 6.0)


class MveProducts16(Products16):
    """Products of int16 by VMLADAVA, eight per instruction."""

    name = "mve.products16"
    estimate_error = 1.25
    sources = ("products16.c", "products16_tile.S")
    function = "mve_products16"
    prices = (0.27, 9.0, 0.6)

    def tile(self, target: Target) -> Tile:
        return Tile(rows=3, channels=4, pair=1, step=8, paired=False, sum_bytes=4, direct=2)


class MveResize(Resize8):
    """Bilinear resize of four channels at a time, in 32 bits, for any weights."""

    name = "mve.resize_bilinear_s8"
    row_alignment = 1
    estimate_error = 1.25
    function = "mve_resize_bilinear_s8"
    whole = 1024
    prices = (2.3, 1.6, 18.0)

    def row_bytes(self, view: LayerView, target: Target) -> int:
        _, _, width, channels = view.inputs[0].shape
        return 4 * width * channels


class MveRowSums(RowSums):
    """Bands, 16 channels at a time; the output from the sums in generic C."""

    name = "mve.row_sums"
    sources = ("mve_row_sums.c", "../generic/row_sums.c")
    headers: ClassVar[tuple[str, ...]] = ("mve_row_sums.h", "../generic/row_sums.h")
    prefix = "mve"

    def cost_rows(self, view: LayerView, rows: int, target: Target) -> float:
        """Return instructions, from counts: 10 per 16 channels of a pixel, 5 per 4 of the rest."""
        _, _, width, channels = view.inputs[0].shape
        sixteens, fours = channels // 16, -(-(channels % 16) // 4)
        return float(sixteens * (10 * rows * width + 20) + fours * (5 * rows * width + 18) + 45)


class Softmax(RowSoftmax):
    """Softmax one row at a time; exponentials of four elements are gathered from a table."""

    name = "mve.softmax"
    sources = ("softmax.c",)
    function = "mve_softmax"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 4.2 per element, 120 per row."""
        elements = view.outputs[0].elements
        return 4.2 * elements + 120 * elements / view.outputs[0].shape[-1]


class MveSoftmax16(Softmax16):
    """Softmax of four elements at a time; table lines are gathered."""

    name = "mve.softmax_s16"
    function = "mve_softmax_s16"
    prices = (6.2, 105.0)


class MveSvdf(Svdf8):
    """SVDF in vectors: sixteen elements of a row, eight steps of a memory."""

    name = "mve.svdf_s8"
    estimate_error = 1.5
    function = "mve_svdf_s8"
    prices = (0.2, 0.7, 25.0, 15.0)

    def chunk(self, target: Target) -> int:
        return 16


class Table(ByteTable):
    """Table lookups, 16 elements at a time."""

    name = "mve.table"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("table.S",)
    function = "mve_table"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 4 per 16 elements."""
        return 4.0 * -(-view.outputs[0].elements // 16) + 12
