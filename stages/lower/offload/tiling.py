"""Tiling candidates of a layer, and the L1 memory that each needs.

A candidate is a tile size, a number of buffers for each stream, and the set of tensors that lie in L1 as a whole. Any
other tensor is a stream: a sequence of contents; each tile reads one. With two buffers the next content
arrives while the engine reads the previous one:

    tiles            0         1         2         3
    input rows       a -> 0    b -> 1    c -> 0    d -> 1
    constants        w -> 0                                 one content for all tiles stays in one buffer
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import gcd, lcm
from typing import Any

from stages.backends.accelerators.accelerator import Accelerator
from stages.backends.accelerators.tiles import Granule, Tile, channel_group, extent, reads, tiles
from stages.ir.graph import LayerView
from stages.lower.offload.machine import aligned
from stages.lower.offload.runs import block_of, runs
from stages.lower.offload.tile_costs import TileCosts
from stages.lower.offload.windows import window_bytes

_PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_BOTH = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # if both rows and channels are cut
_USUAL, _MOST = 96, 2048  # maximum tiles of a layer; the second only if the first does not fit

Key = tuple[int, ...]


@dataclass(frozen=True)
class Stream:
    """The contents that tiles read or write in turn.

    keys   the content of each tile
    bytes  of the largest content
    slots  number of buffers
    """

    name: str
    keys: tuple[Key, ...]
    bytes: int
    slots: int

    @cached_property
    def ordinals(self) -> tuple[int, ...]:
        """The number of each tile's content. It rises by one where the content changes."""
        ordinals, number = [], 0
        for tile, key in enumerate(self.keys):
            number += tile > 0 and key != self.keys[tile - 1]
            ordinals.append(number)
        return tuple(ordinals)

    @property
    def contents(self) -> int:
        """The number of contents."""
        return self.ordinals[-1] + 1

    @property
    def used(self) -> int:
        """The number of buffers in use."""
        return min(self.slots, self.contents)


@dataclass(frozen=True)
class TilingCandidate:
    """A layer in tiles of at most `rows` and `channels`, with resident tensors in L1.

    `streams` are the inputs, constants, scratch and output that are not resident. `scratch` passes data from a tile's
    calls before the engine to those after it.
    """

    rows: int
    channels: int
    resident_inputs: tuple[bool, ...]
    resident_output: bool
    tiles: tuple[Tile, ...]
    streams: tuple[Stream, ...]

    @cached_property
    def bytes(self) -> int:
        """Bytes of L1 beside the resident tensors."""
        return sum(stream.used * aligned(stream.bytes) for stream in self.streams)

    @cached_property
    def ahead_bytes(self) -> int:
        """Bytes of L1 for early transfers."""
        return sum(stream.used * aligned(stream.bytes) for stream in self.streams if stream.name == "constants")


def tiling_candidates(
    view: LayerView, accelerator: Accelerator[Any], capacity: int, costs: TileCosts
) -> list[TilingCandidate]:
    """Return the candidates that take at most `capacity` bytes of L1 beside resident tensors.

    Many small tiles are considered only if no other candidate without resident tensors fits.
    """
    usual = list(_candidates(view, accelerator, capacity, range(_USUAL + 1), costs))
    if any(not any((*candidate.resident_inputs, candidate.resident_output)) for candidate in usual):
        return usual
    return usual + list(_candidates(view, accelerator, capacity, range(_USUAL + 1, _MOST + 1), costs))


def with_more_constant_buffers(candidate: TilingCandidate) -> Iterator[TilingCandidate]:
    """Yield the candidate with three and four constant buffers, if it has enough contents.

    Two buffers are in use, by the engine and by the core that finishes the previous tile. The others can be filled.
    """
    for slots in (3, 4):
        streams = [
            replace(stream, slots=slots) if stream.name == "constants" and stream.contents >= slots else stream
            for stream in candidate.streams
        ]
        if any(stream.slots == slots for stream in streams):
            yield replace(candidate, streams=tuple(streams))


def whole_blocks(view: LayerView, granule: Granule) -> Granule:
    """Return the granule, or a multiple with which tiles cover whole blocks of channels."""
    outputs, inputs = channel_group(view)
    channels = lcm(granule.channels, block_of(view.outputs[0]))
    for block in map(block_of, view.inputs):
        if inputs % block:
            channels = lcm(channels, outputs * (block // gcd(inputs, block)))
    return Granule(granule.rows, channels)


def _candidates(
    view: LayerView, accelerator: Accelerator[Any], capacity: int, counts: range, costs: TileCosts
) -> Iterator[TilingCandidate]:
    shape, granule = extent(view.outputs[0]), whole_blocks(view, accelerator.granule(view))
    sizes = dict.fromkeys(
        (_size(shape.rows, in_rows, granule.rows), _size(shape.channels, in_channels, granule.channels))
        for in_rows, in_channels in product(_PIECES, _PIECES)
        if 1 in (in_rows, in_channels) or (in_rows in _BOTH and in_channels in _BOTH)
    )
    for rows, channels in sizes:
        if -(-shape.rows // rows) * -(-shape.channels // channels) not in counts:
            continue
        cut = tiles(view, rows, channels)
        for turned in (False, True) if rows < shape.rows and channels < shape.channels else (False,):
            order = sorted(cut, key=lambda tile: (tile.rows, tile.channels)) if turned else cut
            yield from _candidates_of(view, accelerator, order, capacity, costs)


def _candidates_of(
    view: LayerView, accelerator: Accelerator[Any], order: Sequence[Tile], capacity: int, costs: TileCosts
) -> Iterator[TilingCandidate]:
    rows = max(len(tile.rows) for tile in order)
    channels = max(len(tile.channels) for tile in order)
    parts = [reads(view, tile) for tile in order]
    scratch = [costs.scratch(tile) for tile in order]
    constants = {span: accelerator.constant_bytes(view, span) for span in dict.fromkeys(t.channels for t in order)}
    out = view.outputs[0]
    windows, pieces = accelerator.reads_windows(view), accelerator.reads_pieces(view)
    keys = tuple((number,) for number in range(len(order)))
    sizes = {
        "constants": (tuple(_key(tile.channels) for tile in order), max(constants.values())),
        **{f"scratch:{name}": (keys, max(item[name] for item in scratch)) for name in scratch[0]},
        **{
            f"input:{number}": (
                tuple((*_key(part[number].rows), *_key(part[number].channels)) for part in parts),
                max(runs(tensor, part[number]).total for part in parts)
                if not windows
                else rows * extent(out).columns * window_bytes(view),
            )
            for number, tensor in enumerate(view.inputs)
        },
        "output:0": (keys, max(runs(out, tile).total for tile in order)),
    }
    if pieces:
        apart = [sizes.pop(f"input:{number}") for number in range(len(view.inputs))]
        sizes["input:0"] = (apart[0][0], sum(count for _, count in apart))
    for residence in product((True, False), repeat=len(view.inputs) + 1):
        names = [f"input:{number}" for number in range(len(view.inputs))] + ["output:0"]
        resident_names = {name for name, resident in zip(names, residence, strict=True) if resident}
        resident_names -= {"input:0"} if windows or pieces else set()
        for slots in (2, 1):
            streams = tuple(
                Stream(name, which, count, slots)
                for name, (which, count) in sizes.items()
                if count and name not in resident_names
            )
            candidate = TilingCandidate(rows, channels, residence[:-1], residence[-1], tuple(order), streams)
            if candidate.bytes <= capacity:
                yield candidate
                break


def _size(total: int, pieces: int, granule: int) -> int:
    """Return the size of `pieces` pieces, a multiple of the granule."""
    size = -(-total // pieces)
    return min(-(-size // granule) * granule, total)


def _key(span: Any) -> Key:
    return (span.first, span.end)
