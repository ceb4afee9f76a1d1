"""Kernels of stages/backends/kernels with the C functions and prices of this family."""

from typing import Any, ClassVar

from stages.backends.kernels.byte_table import ByteTable
from stages.backends.kernels.depthwise16 import Depthwise16, Prices16
from stages.backends.kernels.lanes16 import Lanes
from stages.backends.kernels.lstm import Lstm8
from stages.backends.kernels.matmul import Matmul8, MatrixTile
from stages.backends.kernels.plan16 import Tile
from stages.backends.kernels.pool_rows import PoolRows
from stages.backends.kernels.products16 import Products16
from stages.backends.kernels.resize import HalvingResize
from stages.backends.kernels.softmax16 import Softmax16
from stages.backends.kernels.svdf import Svdf8
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class ArmDepthwise16(Depthwise16):
    """Depthwise convolution of int16 with SMLABB and SMLATT."""

    name = "arm_dsp.depthwise16"
    sources = ("depthwise16.c",)
    function = "arm_dsp_depthwise16"
    clips = True
    prices = Prices16(80.0, 55.0, 19.0, 9.5, by_lanes=3.0)

    def lanes(self, target: Target) -> Lanes:
        return Lanes(group=4, taps=1, inner=2, apart=2, outer=1)


class ArmLstm(Lstm8):
    """LSTM, four elements of a row with SMLAD, from an int16 copy."""

    name = "arm_dsp.lstm"
    estimate_error = 1.25
    sources = ("lstm.c",)
    function = "arm_dsp_lstm_s8"
    wide = 2
    prices = (1.3, 520.0)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if reason := super().why_not_layer(view, target):
            return reason
        if not -32 <= view.op.scale[1] <= -2:
            return f"the output's shift is {view.op.scale[1]}; this kernel takes -32 to -2"
        return "" if self.doubled(view) < 1 << 30 else "four times a sum, shifted to the left, does not fit 32 bits"

    def chunk(self, target: Target) -> int:
        return 4


class ArmMatmul(Matmul8):
    """Two rows times two units with SMLAD on int16."""

    name = "arm_dsp.matmul_s8"
    estimate_error = 1.25
    function = "arm_dsp_matmul_s8"
    prices = (3.0, 14.0, 3.5)

    def tile(self, target: Target) -> MatrixTile:
        return MatrixTile(2, 2, 4, wide=2)


class ArmPoolRows(PoolRows):
    """Pooling by rows, four maxima or sums at a time."""

    name = "arm_dsp.pool_rows"
    row_alignment = 1
    family = "arm_dsp"
    sources = ("pool_rows.c",)
    headers: ClassVar[tuple[str, ...]] = ("arm_dsp_pool_rows.h",)
    lanes = (4, 4)
    prices = (3.4, 5.0, 9.0, 9.0)


class ArmProducts16(Products16):
    """Products of int16 by SMLAD, two per instruction."""

    name = "arm_dsp.products16"
    sources = ("products16.c", "products16_tile.S")
    function = "arm_dsp_products16"
    prices = (0.85, 20.0, 2.5)

    def tile(self, target: Target) -> Tile:
        return Tile(rows=4, channels=2, pair=2, step=2, paired=True, sum_bytes=4, direct=4)


class ArmResize(HalvingResize):
    """Bilinear resize with half sums of 16-bit lanes (SHADD16)."""

    name = "arm_dsp.resize_bilinear_s8"
    row_alignment = 1
    estimate_error = 1.25
    function = "arm_dsp_resize_bilinear_s8"
    prices = (4.8, 3.7, 22.0)
    parts = 1.6

    def group(self, target: Target) -> int:
        return 4


class ArmSoftmax16(Softmax16):
    """SMMULR scales differences, SMLATB interpolates."""

    name = "arm_dsp.softmax_s16"
    function = "arm_dsp_softmax_s16"
    prices = (29.5, 100.0)


class ArmSvdf(Svdf8):
    """SVDF, four elements of a row or two steps of a memory per SMLAD pair."""

    name = "arm_dsp.svdf_s8"
    estimate_error = 1.25
    function = "arm_dsp_svdf_s8"
    wide = 2
    prices = (1.3, 3.5, 45.0, 40.0)

    def chunk(self, target: Target) -> int:
        return 4


class Table(ByteTable):
    """Table lookups with independent loads."""

    name = "arm_dsp.table"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("table.S",)
    function = "arm_dsp_table"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 12 per four elements, 2 per iteration of 16, 30 overhead."""
        return 3.13 * view.outputs[0].elements + 30
