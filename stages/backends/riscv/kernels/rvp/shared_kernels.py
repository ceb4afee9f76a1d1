"""Kernels of stages/backends/kernels with the C functions and prices of this family."""

from typing import Any

from stages.backends.kernels.depthwise16 import Depthwise16, Prices16
from stages.backends.kernels.lanes16 import Lanes
from stages.backends.kernels.lstm import Lstm8
from stages.backends.kernels.matrix import columns_of, depth_of, has_windows, rows_of, run_elements
from stages.backends.kernels.plan16 import SHORT, Tile, direct_rows, plan
from stages.backends.kernels.products16 import Products16
from stages.backends.kernels.resize import HalvingResize
from stages.backends.kernels.svdf import Svdf8
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D


class RvpDepthwise16(Depthwise16):
    """Depthwise convolution of int16 with KMABB and KMATT."""

    name = "rvp.depthwise16"
    estimate_error = 1.25
    sources = ("depthwise16.c",)
    function = "rvp_depthwise16"
    prices = Prices16(75.0, 32.0, 19.0, 7.2, 40.0, 11.0, 19.0, 5.0, 3.0)

    def lanes(self, target: Target) -> Lanes:
        group = target.word_bits // 16
        return Lanes(group=group, taps=2, inner=group, apart=2, outer=0)

    def is_in_place(self, channels: int, target: Target) -> bool:
        """Return whether pixels are read in place; a lane is two channels."""
        return channels % 2 == 0


class RvpLstm(Lstm8):
    """LSTM with one register of a row per SMAQA; on RV64 the functions of two cells at a time."""

    name = "rvp.lstm"
    estimate_error = 1.25
    sources = ("lstm.c",)
    function = "rvp_lstm_s8"

    def chunk(self, target: Target) -> int:
        return target.word_bits // 8

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions; RV64 halves those of products, an odd cell count adds a cell."""
        op, chunk, wide = view.op, self.chunk(target), target.word_bits == 64
        steps = view.outputs[0].elements / op.units
        depth, before = (-(-count // chunk) * chunk for count in (op.depth, op.units))
        functions = 405 * (op.units + op.units % 2) if wide else 665 * op.units
        products = 4 * (0.38 if wide else 0.75) * (depth + before) * op.units
        return float(steps * (functions + products + 2 * (op.depth + op.units) + (370 if wide else 250)))


# Around the sums of three pixels and 1, 2, 3 or 4 channels, and what a step of the depth takes these.
_AROUND = {64: (45, 62, 118, 112), 32: (45, 70, 130, 125)}
_STEP = (13, 17, 26, 26)


class RvpProducts16(Products16):
    """Products of int16: SMALDA on RV64 (four to 64 bits), KMADA on RV32 (two to 32 bits)."""

    name = "rvp.products16"
    estimate_error = 1.5
    sources = ("products16.c",)
    function = "rvp_products16"

    def tile(self, target: Target) -> Tile:
        word = target.word_bits // 8
        return Tile(rows=3, channels=4, pair=2, step=word // 2, paired=False, sum_bytes=word, direct=word)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions of tiles of three pixels, remaining pixels and copied rows."""
        tile = self.tile(target)
        layout, channels, pixels = plan(view, tile), columns_of(view), rows_of(view)
        steps, (blocks, rest) = layout.depth / tile.step, divmod(channels, tile.channels)
        block_costs = [around + step * steps for around, step in zip(_AROUND[target.word_bits], _STEP, strict=True)]
        three = 80 + blocks * block_costs[3] + (block_costs[rest - 1] if rest else 0)
        single = 90 + -(-channels // tile.channels) * (55 + 12.5 * steps) + 10 * channels
        if layout.mode != SHORT:
            three, single = three + 65 * channels, single + 15 * channels
        tiles, alone = divmod(pixels, tile.rows)
        if direct_rows(view, tile, layout.depth):
            return 80.0 + tiles * three + alone * single
        if _reads_halves(view, target) and layout.mode == SHORT:
            return 80.0 + -(-pixels // tile.rows) * (three - 35)
        return 80.0 + tiles * three + alone * single + pixels * _copied(view)


def _reads_halves(view: LayerView, target: Target) -> bool:
    """Return whether RV64 reads pixels in place that are not whole registers."""
    is_pixel = isinstance(view.op, Conv2D) and not has_windows(view) and rows_of(view) > 2
    return target.word_bits == 64 and is_pixel and depth_of(view) % 2 == 0


def _copied(view: LayerView) -> float:
    """Return the instructions of copying a pixel's row: per run, and around it."""
    run = run_elements(view)
    copy = 5 * run if run < 8 else 25 + 2.75 * run
    runs = depth_of(view) // run
    return runs * (40 + copy) + 95 if has_windows(view) else 20 + copy


class RvpResize(HalvingResize):
    """Bilinear resize with half sums of 16-bit lanes (RADD16)."""

    name = "rvp.resize_bilinear_s8"
    row_alignment = 1
    estimate_error = 1.5
    function = "rvp_resize_bilinear_s8"
    prices = (3.6, 3.4, 28.0)
    parts = 2.0
    units = 1.6

    def group(self, target: Target) -> int:
        return target.word_bits // 8

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions; a register of RV64 holds twice as many channels."""
        return super().cost(view, params, target) * 32 / target.word_bits


class RvpSvdf(Svdf8):
    """SVDF with one register of a row per SMAQA, two steps of a memory per KMDA."""

    name = "rvp.svdf_s8"
    estimate_error = 1.5
    function = "rvp_svdf_s8"
    prices = (0.55, 4.0, 45.0, 40.0)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if reason := super().why_not_layer(view, target):
            return reason
        return "" if view.constant("time").min() > -(1 << 15) else "a time weight is -32768; its products may saturate"

    def chunk(self, target: Target) -> int:
        return target.word_bits // 8
