"""Tiling candidates of a layer, and the L1 memory that each needs.

A candidate is a tile size, a number of buffers for each stream, and the tensors that lie in L1 as a whole. Others are
streams: a sequence of contents, one of which each tile reads. Two buffers let the next content arrive while the engine
reads the one before:

    tiles            0         1         2         3
    input rows       a -> 0    b -> 1    c -> 0    d -> 1
    constants        w -> 0                                 one content for all tiles stays in one buffer
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

from stages.backends.accelerators.tiles import Granule, Tile, channel_group, extent, reads, tiles
from stages.lower.offload.machine import aligned
from stages.lower.offload.runs import block_of, runs
from stages.lower.offload.windows import window_bytes

if TYPE_CHECKING:
    from stages.backends.accelerators.accelerator import Accelerator
    from stages.ir.graph import LayerView
    from stages.lower.offload.tile_costs import TileCosts

_PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_BOTH = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # where rows and channels are cut
_USUAL, _MOST = 96, 2048  # tiles of a layer; the most only where fewer do not fit

Key = tuple[int, ...]


@dataclass(frozen=True)
class Stream:
    """What tiles read or write in turn, `keys` by tile; `bytes` of the largest; `slots` buffers."""

    name: str
    keys: tuple[Key, ...]
    bytes: int
    slots: int

    @cached_property
    def ordinals(self) -> tuple[int, ...]:
        """The number of each tile's content: it goes up by one where the content is another than the one before."""
        found, number = [], 0
        for tile, key in enumerate(self.keys):
            number += tile > 0 and key != self.keys[tile - 1]
            found.append(number)
        return tuple(found)

    @property
    def contents(self) -> int:
        return self.ordinals[-1] + 1

    @property
    def used(self) -> int:
        """Buffers that are really there."""
        return min(self.slots, self.contents)


@dataclass(frozen=True)
class TilingCandidate:
    """A layer in tiles of at most `rows` and `channels`; the resident ones of its inputs and its output lie in L1.

    `streams` are those of inputs, constants, scratch and output that do not, by name; `scratch` is what tiles need from
    their calls before to those after.
    """

    rows: int
    channels: int
    resident_inputs: tuple[bool, ...]
    resident_output: bool
    tiles: tuple[Tile, ...]
    streams: tuple[Stream, ...]

    @cached_property
    def bytes(self) -> int:
        """Of L1, beside the resident tensors."""
        return sum(stream.used * aligned(stream.bytes) for stream in self.streams)

    @cached_property
    def ahead_bytes(self) -> int:
        """Of L1, for what may be brought before the layer begins."""
        return sum(stream.used * aligned(stream.bytes) for stream in self.streams if stream.name == "constants")


def tiling_candidates(
    view: LayerView, accelerator: Accelerator[Any], most: int, alike: TileCosts
) -> list[TilingCandidate]:
    """Those that take at most so many bytes of L1 beside the tensors that lie there; of any residence, if one fits."""
    usual = list(_ways(view, accelerator, most, range(_USUAL + 1), alike))
    if any(not any((*candidate.resident_inputs, candidate.resident_output)) for candidate in usual):
        return usual
    return usual + list(_ways(view, accelerator, most, range(_USUAL + 1, _MOST + 1), alike))


def with_more_constant_buffers(candidate: TilingCandidate) -> Iterator[TilingCandidate]:
    """The candidate with three and four buffers of constants, if there are so many contents.

    Two are read, by the engine and by the core that finishes the tile before; into the others the next may come.
    """
    for slots in (3, 4):
        streams = [
            replace(one, slots=slots) if one.name == "constants" and one.contents >= slots else one
            for one in candidate.streams
        ]
        if any(one.slots == slots for one in streams):
            yield replace(candidate, streams=tuple(streams))


def whole_blocks(view: LayerView, granule: Granule) -> Granule:
    """The granule, or the next multiple by which tiles write and read whole blocks of channels."""
    outputs, inputs = channel_group(view)
    channels = lcm(granule.channels, block_of(view.outputs[0]))
    for block in map(block_of, view.inputs):
        if inputs % block:
            channels = lcm(channels, outputs * (block // gcd(inputs, block)))
    return Granule(granule.rows, channels)


def _ways(
    view: LayerView, accelerator: Accelerator[Any], most: int, counts: range, alike: TileCosts
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
            yield from _of(view, accelerator, order, most, alike)


def _of(
    view: LayerView, accelerator: Accelerator[Any], order: Sequence[Tile], most: int, alike: TileCosts
) -> Iterator[TilingCandidate]:
    rows = max(len(tile.rows) for tile in order)
    channels = max(len(tile.channels) for tile in order)
    parts = [reads(view, tile) for tile in order]
    scratch = [alike.scratch(tile) for tile in order]
    constants = {span: accelerator.constant_bytes(view, span) for span in dict.fromkeys(t.channels for t in order)}
    out = view.outputs[0]
    windows, pieces = accelerator.reads_windows(view), accelerator.reads_pieces(view)
    keys = tuple((number,) for number in range(len(order)))
    sizes = {
        "constants": (tuple(_key(tile.channels) for tile in order), max(constants.values())),
        **{f"scratch:{name}": (keys, max(one[name] for one in scratch)) for name in scratch[0]},
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
        there = {name for name, resident in zip(names, residence, strict=True) if resident}
        there -= {"input:0"} if windows or pieces else set()
        for slots in (2, 1):
            streams = tuple(
                Stream(name, which, count, slots)
                for name, (which, count) in sizes.items()
                if count and name not in there
            )
            candidate = TilingCandidate(rows, channels, residence[:-1], residence[-1], tuple(order), streams)
            if candidate.bytes <= most:
                yield candidate
                break


def _size(whole: int, pieces: int, granule: int) -> int:
    """The size of so many pieces, a multiple of the granule."""
    each = -(-whole // pieces)
    return min(-(-each // granule) * granule, whole)


def _key(span: Any) -> Key:
    return (span.first, span.end)
