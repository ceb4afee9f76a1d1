"""Which region of the target holds each buffer of the arena and each constant, and where in it.

A target with one region for the arena and one for the weights has nothing to decide: the linker says whether they fit.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import TYPE_CHECKING

from stages.base import StageError
from stages.emit.weights import Weights, divide_constants, lay_out
from stages.lower.arena import Plan, plan
from stages.lower.arena.planner import lower_bound
from stages.lower.arena.regions import RegionCapacity, RegionOverflowError, divide
from stages.lower.arena.rules import Contents, Ruled, apply_rules
from stages.lower.arena.traffic import arena_traffic, reads_of_weights
from stages.support.messages import escape

if TYPE_CHECKING:
    import numpy as np

    from stages.backends.targets.memory_rules import MemoryRule
    from stages.backends.targets.spec import Target

_SPARING = (("arena", "weights"), ("weights",), ("arena",), ())


@dataclass(frozen=True)
class Arena:
    """The part of the arena that one region has; `region` is '' where the target has but one for it."""

    region: str
    plan: Plan


@dataclass(frozen=True)
class Placement:
    """The arena and the weights by region, the fastest first, at least one of each; warnings about rules.

    kept   the region that weights are copied from at start, by the one that they lie in
    rules  by region and part the numbers, from 1, of the rules that put something there
    """

    arenas: tuple[Arena, ...]
    weights: tuple[Weights, ...]
    warnings: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)

    @property
    def arena_bytes(self) -> int:
        return sum(arena.plan.total for arena in self.arenas)

    @property
    def arena_lower_bound(self) -> int:
        """The most bytes alive at any one layer: of all buffers, whatever region they lie in."""
        buffers = [buffer for arena in self.arenas for buffer in arena.plan.buffers]
        return lower_bound(buffers, self.arenas[0].plan.alignment)

    @property
    def weights_bytes(self) -> int:
        return sum(len(block.data) for block in self.weights)


class Placer:
    """One network on one target."""

    def __init__(
        self,
        contents: Contents,
        constants: Mapping[str, np.ndarray],
        idle: frozenset[int],
        alignment: int,
        target: Target,
        rules: Sequence[MemoryRule],
        planned: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """`contents.constants` has the keys of `constants` by layer; `idle` layers compute nothing.

        `planned` are regions that an accelerator works on, with the names of the buffers that lie there, and no others.
        """
        self._planned = planned or {}
        self._contents = contents
        self._constants = constants
        self._alignment = alignment
        self._rooms = target.rooms
        self._kept = {room.region: room.loaded_from for room in self._rooms.get("weights", ()) if room.loaded_from}
        self._rules = rules
        graph = contents.graph
        self._traffic = arena_traffic(graph, contents.lives, contents.scratch, idle)
        self._reads: dict[str, int] = {}
        for layer in graph.layers:
            keys = contents.constants.get(layer.index, ())
            times = reads_of_weights(graph, layer, sum(constants[key].nbytes for key in keys))
            for key in keys:
                self._reads[key] = self._reads.get(key, 0) + times

    def place(self) -> Placement:
        """Raises StageError when rules ask for too much, or the regions are too small."""
        regions = {part: [r.region for r in rooms if not r.loaded_from] for part, rooms in self._rooms.items()}
        ruled = apply_rules(self._rules, self._contents, regions)
        if not self._rooms:
            arena = Arena("", plan(self._contents.lives.buffers, self._alignment))
            return Placement((arena,), (lay_out(self._constants, self._alignment),), tuple(ruled.warnings))
        self._check_planned(ruled)
        self._check_ruled(ruled)
        for sparing, order in product(_SPARING, permutations(("arena", "weights"))):
            try:
                arenas, weights = self._divided(ruled, order, sparing)
            except RegionOverflowError:
                continue
            rules = {
                (room.region, part): tuple(sorted({n + 1 for n in self._ruled_into(room.region, part, ruled).values()}))
                for part, rooms in self._rooms.items()
                for room in rooms
            }
            return Placement(tuple(arenas), tuple(weights), tuple(ruled.warnings), self._kept, rules)
        raise self._too_small(ruled)

    def _divided(
        self, ruled: Ruled, order: Sequence[str], sparing: Container[str]
    ) -> tuple[list[Arena], list[Weights]]:
        """What comes first takes what it wants of a region that may hold both; parts in `sparing` leave the reserve."""
        taken: dict[str, int] = {}

        def free(part: str) -> list[RegionCapacity]:
            return [
                RegionCapacity(
                    one.region, max(one.bytes - one.reserved * (part in sparing) - taken.get(one.region, 0), 0)
                )
                for one in self._rooms[part]
            ]

        arenas: list[Arena] = []
        weights: list[Weights] = []
        for part in order:
            if part == "arena":
                arenas = self._arenas(free(part), ruled)
                taken |= {arena.region: arena.plan.total for arena in arenas}
            else:
                weights = self._weights(free(part), ruled)
                for block in weights:
                    for region in {block.region, self._kept.get(block.region, block.region)}:
                        taken[region] = taken.get(region, 0) + len(block.data)
        return arenas, weights

    def _arenas(self, rooms: list[RegionCapacity], ruled: Ruled) -> list[Arena]:
        elsewhere = frozenset[str]().union(*self._planned.values())
        buffers = [buffer for buffer in self._contents.lives.buffers if buffer.name not in elsewhere]
        first = [self._planned_arena(room) for room in rooms if room.region in self._planned]
        rooms = [room for room in rooms if room.region not in self._planned]
        if len(rooms) == 1:
            return [*first, Arena(rooms[0].region, plan(buffers, self._alignment))]
        fixed = {name: self._rules[n].region for name, n in ruled.arena.items() if name not in elsewhere}
        plans = divide(buffers, rooms, self._traffic, fixed, self._alignment)
        found = first + [Arena(region, one) for region, one in plans.items()]
        return found or [Arena(rooms[0].region, plan(()))]

    def _planned_arena(self, room: RegionCapacity) -> Arena:
        there = self._planned[room.region]
        made = plan([b for b in self._contents.lives.buffers if b.name in there], self._alignment)
        if made.total > room.bytes:
            raise RegionOverflowError
        return Arena(room.region, made)

    def _check_planned(self, ruled: Ruled) -> None:
        """Raises StageError for a rule about a region that an accelerator works on, or about what lies there."""
        home = {name: region for region, names in self._planned.items() for name in names}
        for name, number in ruled.arena.items():
            region = self._rules[number].region
            if region != home.get(name, region) or (region in self._planned and name not in home):
                raise StageError(
                    f"memory rule {number + 1} puts {escape.name(name)} into {region}; what lies in "
                    f"{home.get(name, region)} is planned with the accelerator's layers",
                    at=("memory", "rules", number, "region"),
                )

    def _weights(self, rooms: list[RegionCapacity], ruled: Ruled) -> list[Weights]:
        if len(rooms) == 1:
            return [lay_out(self._constants, self._alignment, rooms[0].region)]
        fixed = {key: self._rules[number].region for key, number in ruled.weights.items()}
        return divide_constants(self._constants, rooms, self._reads, fixed, self._alignment, self._kept)

    def _ruled_into(self, region: str, part: str, ruled: Ruled) -> dict[str, int]:
        """The buffers or constants that rules put into a region, each with the number of the rule from 0."""
        decided = ruled.arena if part == "arena" else ruled.weights
        return {name: number for name, number in decided.items() if self._rules[number].region == region}

    def _check_ruled(self, ruled: Ruled) -> None:
        """Raises StageError where rules put more into a region than it has, at the last that puts something there."""
        rooms = {room.region: room.bytes for rooms in self._rooms.values() for room in rooms}
        kept = dict.fromkeys(rooms, 0)
        for region, room in rooms.items():
            arena = self._ruled_into(region, "arena", ruled)
            weights = self._ruled_into(region, "weights", ruled)
            at_once = lower_bound([b for b in self._contents.lives.buffers if b.name in arena], self._alignment)
            constant = len(lay_out({key: self._constants[key] for key in weights}, self._alignment).data)
            numbers = {*arena.values(), *weights.values()}
            if at_once + constant > room:
                needs = [f"{at_once:,} of the arena that are needed at once"] if at_once else []
                needs += [f"{constant:,} of weights"] if constant else []
                raise StageError(
                    f"memory rule {max(numbers) + 1}: {region} has {room:,} bytes for arena and weights, rules put "
                    f"there {' and '.join(needs)}",
                    hint=f"the largest: {_largest(self._sizes(arena, weights))}",
                    at=("memory", "rules", max(numbers), "region"),
                )
            home = self._kept.get(region, "")
            if home in kept and constant:
                kept[home] += constant
                if kept[home] > rooms[home]:
                    raise StageError(
                        f"memory rule {max(weights.values()) + 1}: weights that are copied to {region} are kept in "
                        f"{home} too, which has {rooms[home]:,} bytes; rules copy {kept[home]:,}",
                        hint=f"the largest: {_largest(self._sizes((), weights))}",
                        at=("memory", "rules", max(weights.values()), "region"),
                    )

    def _sizes(self, arena: Container[str], weights: Container[str]) -> list[tuple[str, int]]:
        """Names and bytes of buffers, and layers with the bytes of their constants."""
        layers = {layer.index: layer.name for layer in self._contents.graph.layers}
        constants = {
            f"weights of layer {index} {layers[index]}": sum(
                self._constants[k].nbytes for k in set(keys) if k in weights
            )
            for index, keys in self._contents.constants.items()
        }
        buffers = {b.name: b.bytes for b in self._contents.lives.buffers if b.name in arena}
        return [*buffers.items(), *((name, size) for name, size in constants.items() if size)]

    def _too_small(self, ruled: Ruled) -> StageError:
        lives = self._contents.lives
        bound = lower_bound(lives.buffers, self._alignment)
        weights = len(lay_out(self._constants, self._alignment).data)
        rooms = [
            f"{part}: {', '.join(f'{r.region} {r.bytes:,}' for r in rooms)}" for part, rooms in self._rooms.items()
        ]
        ruled_by = sorted({*ruled.arena.values(), *ruled.weights.values()})
        asked = f", with memory rules {', '.join(str(n + 1) for n in ruled_by)}" if ruled_by else ""
        sizes = {buffer.name: buffer.bytes for buffer in lives.buffers}
        return StageError(
            f"the model does not fit the target's memory{asked}: at one layer {bound:,} bytes of the arena are in use, "
            f"weights are {weights:,}\nbytes that may be taken, {'; '.join(rooms)}",
            hint=f"the largest: {_largest(sizes.items())}; {_largest(self._sizes((), self._constants), 1)}",
            at=("memory", "rules") if ruled_by else (),
        )


def _largest(sizes: Iterable[tuple[str, int]], count: int = 3) -> str:
    found = sorted(sizes, key=lambda pair: -pair[1])[:count]
    return ", ".join(f"{escape.name(name)} {size:,}" for name, size in found)
