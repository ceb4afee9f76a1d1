"""Placement of arena buffers and constants in the target's memory regions.

With one region for the arena and one for the weights there is no choice; the linker then checks whether they fit.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

from stages.backends.targets.memory_rules import MemoryRule
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.emit.weights import Weights, divide_constants, lay_out
from stages.ir.arrays import Array
from stages.lower.arena import Plan, plan
from stages.lower.arena.planner import lower_bound
from stages.lower.arena.regions import RegionCapacity, RegionOverflowError, divide
from stages.lower.arena.rules import Contents, Ruled, apply_rules
from stages.lower.arena.traffic import arena_traffic, reads_of_weights
from stages.support.messages import escape
from stages.support.messages.stage_error import DoesNotFit

_SPARING = (("arena", "weights"), ("weights",), ("arena",), ())


@dataclass(frozen=True)
class Arena:
    """The arena plan of one region; `region` is '' if the target has only one."""

    region: str
    plan: Plan


@dataclass(frozen=True)
class Placement:
    """Arena and weights by region, fastest first, at least one each; warnings about rules.

    loaded_from  the region from which start-up code copies weights, by their region
    rules        numbers, from 1, of the rules that put something there, by region and part
    """

    arenas: tuple[Arena, ...]
    weights: tuple[Weights, ...]
    warnings: tuple[str, ...] = ()
    loaded_from: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)

    @property
    def arena_bytes(self) -> int:
        """Bytes of all arenas."""
        return sum(arena.plan.total for arena in self.arenas)

    @property
    def arena_lower_bound(self) -> int:
        """Largest number of bytes in use at one layer, over all regions."""
        buffers = [buffer for arena in self.arenas for buffer in arena.plan.buffers]
        return lower_bound(buffers, self.arenas[0].plan.alignment)

    @property
    def weights_bytes(self) -> int:
        """Bytes of all blocks of weights."""
        return sum(len(block.data) for block in self.weights)


class Placer:
    """Places a network's buffers and constants in the regions of a target."""

    def __init__(
        self,
        contents: Contents,
        constants: Mapping[str, Array],
        idle: frozenset[int],
        alignment: int,
        target: Target,
        rules: Sequence[MemoryRule],
        planned: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """`contents.constants` has the keys of `constants` by layer; `idle` layers compute nothing.

        `planned` has the regions of an accelerator with the names of all buffers that lie there.
        """
        self._planned = planned or {}
        self._contents = contents
        self._constants = constants
        self._alignment = alignment
        self._regions = target.capacities
        self._loaded_from = {
            region.region: region.loaded_from for region in self._regions.get("weights", ()) if region.loaded_from
        }
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
        """Place everything. Raises StageError if the regions are too small, also by rules."""
        regions = {part: [r.region for r in holders if not r.loaded_from] for part, holders in self._regions.items()}
        ruled = apply_rules(self._rules, self._contents, regions)
        if not self._regions:
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
                (r.region, part): tuple(sorted({n + 1 for n in self._ruled_into(r.region, part, ruled).values()}))
                for part, holders in self._regions.items()
                for r in holders
            }
            return Placement(tuple(arenas), tuple(weights), tuple(ruled.warnings), self._loaded_from, rules)
        raise self._too_small(ruled)

    def _divided(
        self, ruled: Ruled, order: Sequence[str], sparing: Container[str]
    ) -> tuple[list[Arena], list[Weights]]:
        """Place the parts in this order; an earlier part has priority.

        Parts in `sparing` leave the reserve free.
        """
        used: dict[str, int] = {}

        def free(part: str) -> list[RegionCapacity]:
            return [
                RegionCapacity(
                    region.region,
                    max(region.bytes - region.reserved * (part in sparing) - used.get(region.region, 0), 0),
                )
                for region in self._regions[part]
            ]

        arenas: list[Arena] = []
        weights: list[Weights] = []
        for part in order:
            if part == "arena":
                arenas = self._arenas(free(part), ruled)
                used |= {arena.region: arena.plan.total for arena in arenas}
            else:
                weights = self._weights(free(part), ruled)
                for block in weights:
                    for region in {block.region, self._loaded_from.get(block.region, block.region)}:
                        used[region] = used.get(region, 0) + len(block.data)
        return arenas, weights

    def _arenas(self, capacities: list[RegionCapacity], ruled: Ruled) -> list[Arena]:
        elsewhere = frozenset[str]().union(*self._planned.values())
        buffers = [buffer for buffer in self._contents.lives.buffers if buffer.name not in elsewhere]
        planned = [self._planned_arena(capacity) for capacity in capacities if capacity.region in self._planned]
        capacities = [capacity for capacity in capacities if capacity.region not in self._planned]
        if len(capacities) == 1:
            return [*planned, Arena(capacities[0].region, plan(buffers, self._alignment))]
        fixed = {name: self._rules[n].region for name, n in ruled.arena.items() if name not in elsewhere}
        plans = divide(buffers, capacities, self._traffic, fixed, self._alignment)
        arenas = planned + [Arena(region, region_plan) for region, region_plan in plans.items()]
        return arenas or [Arena(capacities[0].region, plan(()))]

    def _planned_arena(self, capacity: RegionCapacity) -> Arena:
        names = self._planned[capacity.region]
        region_plan = plan([b for b in self._contents.lives.buffers if b.name in names], self._alignment)
        if region_plan.total > capacity.bytes:
            raise RegionOverflowError
        return Arena(capacity.region, region_plan)

    def _check_planned(self, ruled: Ruled) -> None:
        """Raise StageError for a rule on an accelerator's region, or on buffers in it."""
        home = {name: region for region, names in self._planned.items() for name in names}
        for name, number in ruled.arena.items():
            region = self._rules[number].region
            if region != home.get(name, region) or (region in self._planned and name not in home):
                raise StageError(
                    f"memory rule {number + 1} cannot put {escape.name(name)} into {region}: the content of "
                    f"{home.get(name, region)} is planned with the accelerator's layers",
                    at=("memory", "rules", number, "region"),
                )

    def _weights(self, capacities: list[RegionCapacity], ruled: Ruled) -> list[Weights]:
        if len(capacities) == 1:
            return [lay_out(self._constants, self._alignment, capacities[0].region)]
        fixed = {key: self._rules[number].region for key, number in ruled.weights.items()}
        return divide_constants(self._constants, capacities, self._reads, fixed, self._alignment, self._loaded_from)

    def _ruled_into(self, region: str, part: str, ruled: Ruled) -> dict[str, int]:
        """Return buffers or constants with rules for a region, and the rule's number from 0."""
        decided = ruled.arena if part == "arena" else ruled.weights
        return {name: number for name, number in decided.items() if self._rules[number].region == region}

    def _check_ruled(self, ruled: Ruled) -> None:
        """Raise StageError if rules put more into a region than it has.

        The last rule of the region is blamed.
        """
        capacities = {r.region: r.bytes for holders in self._regions.values() for r in holders}
        copied = dict.fromkeys(capacities, 0)
        for region, capacity in capacities.items():
            arena = self._ruled_into(region, "arena", ruled)
            weights = self._ruled_into(region, "weights", ruled)
            at_once = lower_bound([b for b in self._contents.lives.buffers if b.name in arena], self._alignment)
            constant = len(lay_out({key: self._constants[key] for key in weights}, self._alignment).data)
            numbers = {*arena.values(), *weights.values()}
            if at_once + constant > capacity:
                needs = [f"{at_once:,} of the arena at one time"] if at_once else []
                needs += [f"{constant:,} of weights"] if constant else []
                raise StageError(
                    f"memory rule {max(numbers) + 1}: {region} has {capacity:,} bytes for arena and weights, but "
                    f"rules put {' and '.join(needs)} there",
                    hint=f"the largest: {_largest(self._sizes(arena, weights))}",
                    at=("memory", "rules", max(numbers), "region"),
                )
            home = self._loaded_from.get(region, "")
            if home in copied and constant:
                copied[home] += constant
                if copied[home] > capacities[home]:
                    raise StageError(
                        f"memory rule {max(weights.values()) + 1}: weights that are copied to {region} "
                        f"are also in {home}, which has {capacities[home]:,} bytes; rules copy {copied[home]:,}",
                        hint=f"the largest: {_largest(self._sizes((), weights))}",
                        at=("memory", "rules", max(weights.values()), "region"),
                    )

    def _sizes(self, arena: Container[str], weights: Container[str]) -> list[tuple[str, int]]:
        """Return names and bytes of buffers, and of layers with the bytes of their constants."""
        layers = {layer.index: layer.name for layer in self._contents.graph.layers}
        constants = {
            f"weights of layer {index} {layers[index]}": sum(
                self._constants[k].nbytes for k in set(keys) if k in weights
            )
            for index, keys in self._contents.constants.items()
        }
        buffers = {b.name: b.bytes for b in self._contents.lives.buffers if b.name in arena}
        return [*buffers.items(), *((name, size) for name, size in constants.items() if size)]

    def _too_small(self, ruled: Ruled) -> DoesNotFit:
        lives = self._contents.lives
        bound = lower_bound(lives.buffers, self._alignment)
        weights = len(lay_out(self._constants, self._alignment).data)
        capacities = [
            f"{part}: {', '.join(f'{r.region} {r.bytes:,}' for r in holders)}"
            for part, holders in self._regions.items()
        ]
        ruled_by = sorted({*ruled.arena.values(), *ruled.weights.values()})
        rules_text = f", with memory rules {', '.join(str(n + 1) for n in ruled_by)}" if ruled_by else ""
        sizes = {buffer.name: buffer.bytes for buffer in lives.buffers}
        return DoesNotFit(
            f"the model does not fit the target's memory{rules_text}: the arena's peak is {bound:,} bytes, "
            f"weights are {weights:,}\navailable bytes: {'; '.join(capacities)}",
            hint=f"the largest: {_largest(sizes.items())}; {_largest(self._sizes((), self._constants), 1)}",
            at=("memory", "rules") if ruled_by else (),
        )


def _largest(sizes: Iterable[tuple[str, int]], count: int = 3) -> str:
    largest = sorted(sizes, key=lambda pair: -pair[1])[:count]
    return ", ".join(f"{escape.name(name)} {size:,}" for name, size in largest)
