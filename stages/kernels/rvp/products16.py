"""Layers on 16-bit activations: three pixels times four channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stages.kernels.plan16 import Tile
from stages.kernels.products16 import Products16

if TYPE_CHECKING:
    from stages.targets.spec import Target


class RvpProducts16(Products16):
    """Sums of 64 bits by SMALDA on RV64, four products an instruction, of 32 by KMADA on RV32, two."""

    name = "rvp.products16"
    sources = ("products16.c",)
    headers: ClassVar[tuple[str, ...]] = ("products16.h",)
    function = "rvp_products16"
    prices = (0.8, 20.0, 2.5)

    def tile(self, target: Target) -> Tile:
        word = target.word_bits // 8
        return Tile(rows=3, channels=4, pair=2, step=word // 2, paired=False, sum_bytes=word, direct=word)
