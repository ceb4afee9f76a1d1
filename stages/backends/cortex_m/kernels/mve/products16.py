"""Layers on 16-bit activations, three pixels times four channels at a time."""

from stages.backends.kernels.plan16 import Tile
from stages.backends.kernels.products16 import Products16
from stages.backends.targets.spec import Target


class MveProducts16(Products16):
    """Products of int16 by VMLADAVA, eight per instruction."""

    name = "mve.products16"
    estimate_error = 1.25
    sources = ("products16.c", "products16_tile.S")
    function = "mve_products16"
    prices = (0.27, 9.0, 0.6)

    def tile(self, target: Target) -> Tile:
        return Tile(rows=3, channels=4, pair=1, step=8, paired=False, sum_bytes=4, direct=2)
