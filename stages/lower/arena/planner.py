"""Offsets for buffers with known lifetimes, so that the block is as small as possible.

Buffers are rectangles in a diagram of time (layers) and memory (bytes). Two that overlap in time must not overlap in
memory:

    bytes
      |        +------------+
      |  +-----|     c      |
      |  |  b  +--------+---+
      |  +-----+   a    |
      +--------+--------+--------> layer

The output of a streamed group may overlap rows of its input that are dead: `Buffer.over` and `Buffer.distance`.

A lower bound is the most bytes alive at one layer. The optimum is NP-hard ("dynamic storage allocation"). First-fit
over a good order reaches the bound on nearly all real networks, and a short local search over orders closes most of the
rest.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

SEARCH_STEPS = 400
"""Orders that the local search tries if no initial order reaches the lower bound."""


@dataclass(frozen=True)
class Buffer:
    """`bytes` of memory, needed from layer `first` to `last`, both inclusive.

    It may overlap the buffer `over`, if that begins `distance` bytes or more after it.
    """

    name: str
    bytes: int
    first: int
    last: int
    kind: str = "tensor"  # for reports
    over: str = ""
    distance: int = 0

    def __post_init__(self) -> None:
        if self.bytes < 0 or self.last < self.first:
            raise ValueError(f"buffer {self.name}: {self.bytes} bytes from layer {self.first} to {self.last}")

    def meets(self, other: Buffer) -> bool:
        """Return whether both are alive at some layer."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Plan:
    """`offsets` by buffer name, in bytes from the arena's start, and `total` bytes of arena.

    `lower_bound` is the most bytes alive at one layer, sizes rounded up to `alignment`. No plan can be smaller.
    """

    buffers: tuple[Buffer, ...]
    offsets: Mapping[str, int]
    total: int
    lower_bound: int
    alignment: int

    def rows(self) -> list[dict[str, int | str]]:
        """Return the plan for reports, by offset, then by time."""
        ordered = sorted(self.buffers, key=lambda b: (self.offsets[b.name], b.first, b.name))
        return [{"name": b.name, "offset": self.offsets[b.name], **_life(b)} for b in ordered]


def _life(buffer: Buffer) -> dict[str, int | str]:
    return {"kind": buffer.kind, "bytes": buffer.bytes, "first": buffer.first, "last": buffer.last}


def plan(buffers: Iterable[Buffer], alignment: int = 16) -> Plan:
    """Return aligned offsets such that no two buffers alive at once overlap. Deterministic.

    Raises ValueError for duplicate names, or an alignment that is not a power of two.
    """
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment {alignment} is not a power of two")
    chosen = with_aligned_distances(buffers, alignment)
    if len({b.name for b in chosen}) != len(chosen):
        raise ValueError(f"duplicate buffer names among {len(chosen)} buffers")
    sizes = {b.name: round_up(b.bytes, alignment) for b in chosen}
    bound = lower_bound(chosen, alignment)
    best = _search(chosen, sizes, bound)
    if any(b.over for b in chosen) and _total(best, sizes) > bound:
        best = min(best, _mirrored(chosen, sizes, bound), key=lambda offsets: _total(offsets, sizes))
    return Plan(chosen, best, _total(best, sizes), bound, alignment)


def with_aligned_distances(buffers: Iterable[Buffer], alignment: int) -> tuple[Buffer, ...]:
    """Return the buffers, with distances that are multiples of `alignment`."""
    return tuple(replace(b, distance=round_up(b.distance, alignment)) if b.over else b for b in buffers)


def _mirrored(buffers: Sequence[Buffer], sizes: Mapping[str, int], bound: int) -> dict[str, int]:
    """Return a search's offsets from the top, where a group's output can lie below its input."""
    over = {b.over: b for b in buffers if b.over}
    upside_down = tuple(
        replace(b, over="", distance=0)
        if (below := over.get(b.name)) is None
        else replace(b, over=below.name, distance=below.distance + sizes[b.name] - sizes[below.name])
        for b in buffers
    )
    offsets = _search(upside_down, sizes, bound)
    top = _total(offsets, sizes)
    return {name: top - offset - sizes[name] for name, offset in offsets.items()}


def lower_bound(buffers: Sequence[Buffer], alignment: int = 1) -> int:
    """Return the most bytes alive at one layer, each buffer rounded up to `alignment`."""
    return max(bytes_alive(buffers, {b.first for b in buffers}, alignment), default=0)


def bytes_alive(buffers: Sequence[Buffer], moments: Iterable[int], alignment: int = 1) -> list[int]:
    """Return the bytes alive at each layer of `moments`.

    Bytes that two buffers may share count once.
    """
    sizes = {b.name: round_up(b.bytes, alignment) for b in buffers}
    alive = []
    for now in moments:  # the set of live buffers grows only where a buffer begins
        names = {b.name: b for b in buffers if b.first <= now <= b.last}
        shared = sum(_shared(b, sizes, alignment) for b in names.values() if b.over in names)
        alive.append(sum(sizes[name] for name in names) - shared)
    return alive


def _shared(buffer: Buffer, sizes: Mapping[str, int], alignment: int) -> int:
    """Return the most bytes that a buffer can share with the one that it may overlap."""
    below, above = sizes[buffer.name], sizes[buffer.over]
    return max(0, min(below, above, below - round_up(buffer.distance, alignment)))


def round_up(value: int, alignment: int) -> int:
    """Return the next multiple of `alignment`, a power of two."""
    return (value + alignment - 1) & -alignment


def _total(offsets: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    return max((offset + sizes[name] for name, offset in offsets.items()), default=0)


def _first_fit(order: Sequence[Buffer], sizes: Mapping[str, int]) -> dict[str, int]:
    """Place each buffer of `order` at the lowest offset that earlier ones leave free."""
    offsets: dict[str, int] = {}
    placed: list[Buffer] = []
    for buffer in order:
        offsets[buffer.name] = lowest_gap(buffer, placed, offsets, sizes)
        placed.append(buffer)
    return offsets


def lowest_gap(buffer: Buffer, placed: Iterable[Buffer], offsets: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    """Return the lowest offset at which a buffer meets none of the placed ones."""
    offset = 0
    for last, first in sorted(_excluded(buffer, other, offsets, sizes) for other in placed if other.meets(buffer)):
        if offset <= last:
            break
        offset = max(offset, first)
    return offset


def _excluded(buffer: Buffer, other: Buffer, offsets: Mapping[str, int], sizes: Mapping[str, int]) -> tuple[int, int]:
    """Return the last offset of a buffer below a placed one, and the first offset above it."""
    start, below, above = offsets[other.name], sizes[buffer.name], sizes[other.name]
    if buffer.over == other.name:
        below = min(below, buffer.distance)
    if other.over == buffer.name:
        above = min(above, other.distance)
    return start - below, start + above


def orders(buffers: Sequence[Buffer], sizes: Mapping[str, int]) -> list[list[Buffer]]:
    """Return initial orders: by size, lifetime, area, and memory pressure in the lifetime."""
    moments = {now for b in buffers for now in (b.first, b.last)}
    pressure = {now: sum(sizes[b.name] for b in buffers if b.first <= now <= b.last) for now in moments}

    def peak(b: Buffer) -> int:
        return max(load for now, load in pressure.items() if b.first <= now <= b.last)

    def span(b: Buffer) -> int:
        return b.last - b.first + 1

    return [
        sorted(buffers, key=lambda b: (-sizes[b.name], b.first, b.name)),
        sorted(buffers, key=lambda b: (-peak(b), -sizes[b.name], b.first, b.name)),
        sorted(buffers, key=lambda b: (-peak(b), -span(b), -sizes[b.name], b.name)),
        sorted(buffers, key=lambda b: (-sizes[b.name] * span(b), b.first, b.name)),
        sorted(buffers, key=lambda b: (-span(b), -sizes[b.name], b.name)),
        sorted(buffers, key=lambda b: (b.first, -sizes[b.name], b.name)),
    ]


def _search(buffers: Sequence[Buffer], sizes: Mapping[str, int], bound: int) -> dict[str, int]:
    """Return the best initial order's offsets, improved by moving buffers that reach the top."""
    best: dict[str, int] = {}
    best_order: list[Buffer] = []
    for order in orders(buffers, sizes):
        offsets = _first_fit(order, sizes)
        if not best_order or _total(offsets, sizes) < _total(best, sizes):
            best, best_order = offsets, order
        if _total(best, sizes) == bound:
            return best
    chance = random.Random(0)  # fixed seed: the same graph gives the same plan
    for _ in range(SEARCH_STEPS):
        top = _total(best, sizes)
        culprits = [i for i, b in enumerate(best_order) if best[b.name] + sizes[b.name] == top]
        order = list(best_order)
        moved = order.pop(chance.choice(culprits))
        order.insert(chance.randrange(len(order) + 1), moved)
        if len(order) > 1:
            i, j = chance.randrange(len(order)), chance.randrange(len(order))
            order[i], order[j] = order[j], order[i]
        offsets = _first_fit(order, sizes)
        if _total(offsets, sizes) <= top:
            best, best_order = offsets, order
        if _total(best, sizes) == bound:
            break
    return best
