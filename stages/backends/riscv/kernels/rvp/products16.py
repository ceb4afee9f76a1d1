"""Layers on 16-bit activations, three pixels times four channels at a time."""

from typing import Any

from stages.backends.kernels.matrix import columns_of, depth_of, has_windows, rows_of, run_elements
from stages.backends.kernels.plan16 import SHORT, Tile, direct_rows, plan
from stages.backends.kernels.products16 import Products16
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D

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
