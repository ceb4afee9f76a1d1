"""Interleave pieces of all inputs by transfers, for engines that add tensors as products.

a0 a1 a2 a3 …  and  b0 b1 b2 b3 …  become  a0 b0 a1 b1 a2 b2 a3 b3 …      one transfer for each tensor
"""

from collections.abc import Iterator

from stages.backends.accelerators.tiles import Tile, reads
from stages.ir.graph import LayerView
from stages.lower.offload.program import Place, Transfer
from stages.lower.offload.runs import runs


def interleave(view: LayerView, tile: Tile, to: str, piece: int) -> Iterator[Transfer]:
    """Yield transfers that interleave pieces of a tile's inputs in the buffer `to`.

    Raises RuntimeError if an input is not a contiguous sequence of pieces of `piece` bytes (an internal error).
    """
    group_bytes = piece * len(view.inputs)
    for number, (tensor, part) in enumerate(zip(view.inputs, reads(view, tile), strict=True)):
        run = runs(tensor, part)
        if run.count != 1 or run.bytes % piece:
            raise RuntimeError(f"internal error: tensor {tensor.name} is not read in pieces of {piece} bytes")
        yield Transfer(
            to=Place(role=to, offset=number * piece), source=Place(role=f"input:{number}", offset=run.offset),
            bytes=piece, runs=run.bytes // piece, to_stride=group_bytes, source_stride=piece,
        )  # fmt: skip
