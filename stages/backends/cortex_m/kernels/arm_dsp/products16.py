"""Layers on 16-bit activations, four pixels times two channels at a time."""

from stages.backends.kernels.plan16 import Tile
from stages.backends.kernels.products16 import Products16
from stages.backends.targets.spec import Target


class ArmProducts16(Products16):
    """Products of int16 by SMLAD, two per instruction."""

    name = "arm_dsp.products16"
    sources = ("products16.c", "products16_tile.S")
    function = "arm_dsp_products16"
    prices = (0.85, 20.0, 2.5)

    def tile(self, target: Target) -> Tile:
        return Tile(rows=4, channels=2, pair=2, step=2, paired=True, sum_bytes=4, direct=4)
