"""Pieces of all inputs laid side by side by transfers: for engines that take sums of tensors as products of one.

a0 a1 a2 a3 …  and  b0 b1 b2 b3 …  become  a0 b0 a1 b1 a2 b2 a3 b3 …      a transfer for each tensor
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stages.backends.accelerators.tiles import reads
from stages.lower.offload.program import Place, Transfer
from stages.lower.offload.runs import runs

if TYPE_CHECKING:
    from stages.backends.accelerators.tiles import Tile
    from stages.ir.graph import LayerView


def interleave(view: LayerView, tile: Tile, to: str, piece: int) -> Iterator[Transfer]:
    """Yield transfers that interleave pieces of all inputs of a tile in the buffer `to`.

    Raises RuntimeError where that is no whole pieces, one behind the other.
    """
    every = piece * len(view.inputs)
    for number, (tensor, part) in enumerate(zip(view.inputs, reads(view, tile), strict=True)):
        there = runs(tensor, part)
        if there.count != 1 or there.bytes % piece:
            raise RuntimeError(f"internal error: tensor {tensor.name} is not read in pieces of {piece} bytes")
        yield Transfer(
            to=Place(role=to, offset=number * piece), source=Place(role=f"input:{number}", offset=there.offset),
            bytes=piece, runs=there.bytes // piece, to_stride=every, source_stride=piece,
        )  # fmt: skip
