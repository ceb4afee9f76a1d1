"""Distribute buffers over several memory regions, and plan each region.

Buffers with the most traffic per byte (and time) go to the fastest region in which they fit, others to the next. This
is first-fit with a choice of regions:

    dtcm  |  +-----+                          sram  |  +-----------------+
          |  |  b  +-----+                          |  |        d        |
          |  +--+--+  c  |                          |  +-----------------+
          +-----+--------+---> layer                +------------------------> layer

A buffer that fits nowhere goes first in the next attempt. The plan with all buffers in one region is considered too. So
there is a plan if one region can hold everything, and the chosen plan has no more traffic in slow regions than this.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stages.lower.arena.planner import (
    Buffer,
    Plan,
    lower_bound,
    lowest_gap,
    orders,
    plan,
    round_up,
    with_aligned_distances,
)

SEARCH_STEPS, LEAST_STEPS, SEARCH_PAIRS = 400, 8, 4_000_000
"""Attempts of each search: SEARCH_PAIRS over the pairs of buffers, within these bounds."""


@dataclass(frozen=True)
class RegionCapacity:
    """A memory region and the bytes of it that buffers may take."""

    region: str
    bytes: int


class RegionOverflowError(Exception):
    """No distribution of the buffers was found that fits the regions."""


def divide(
    buffers: Iterable[Buffer],
    capacities: Sequence[RegionCapacity],
    traffic: Mapping[str, int],
    fixed: Mapping[str, str] | None = None,
    alignment: int = 16,
) -> dict[str, Plan]:
    """Return the plan of each region that holds a buffer, the fastest first. Deterministic.

    capacities  the fastest region first
    traffic     bytes read and written, by buffer
    fixed       region by buffer, for buffers that may lie only there

    Raises RegionOverflowError if no division fits, KeyError for a fixed region that is not in `capacities`.
    """
    task = _Task(tuple(buffers), tuple(capacities), traffic, fixed or {}, alignment)
    if task.is_hopeless():
        raise RegionOverflowError
    single = task.in_one_region()
    if single is not None and task.cost(single)[:-1] == (0,) * (len(capacities) - 1):
        best: _Division | None = single  # all in the fastest
    else:
        best = task.best_of([single, *map(task.attempt, task.orders())])
        best = None if best is None else task.improved(best)
    if best is None:
        raise RegionOverflowError
    return task.plans(best)


@dataclass(frozen=True)
class _Division:
    """Region number and offset of each buffer, and the order in which first-fit placed them."""

    regions: Mapping[str, int]
    offsets: Mapping[str, int]
    order: tuple[Buffer, ...]


class _Task:
    def __init__(
        self,
        buffers: tuple[Buffer, ...],
        capacities: tuple[RegionCapacity, ...],
        traffic: Mapping[str, int],
        fixed: Mapping[str, str],
        alignment: int,
    ) -> None:
        self.buffers = with_aligned_distances(buffers, alignment)
        self.capacities = capacities
        self.traffic = traffic
        self.alignment = alignment
        self.sizes = {b.name: round_up(b.bytes, alignment) for b in buffers}
        pairs = max(len(buffers) ** 2, 1)
        self.steps = max(min(SEARCH_STEPS, SEARCH_PAIRS // pairs), LEAST_STEPS)
        numbers = {region.region: number for number, region in enumerate(capacities)}
        anywhere = tuple(range(len(capacities)))
        self.allowed = {b.name: (numbers[fixed[b.name]],) if b.name in fixed else anywhere for b in buffers}

    def is_hopeless(self) -> bool:
        """Return whether the buffers exceed all regions, or one exceeds each of its regions."""
        most = lower_bound(self.buffers, self.alignment)
        return most > sum(region.bytes for region in self.capacities) or any(
            self.sizes[name] > max(self.capacities[number].bytes for number in able)
            for name, able in self.allowed.items()
        )

    def in_one_region(self) -> _Division | None:
        """Return all buffers in the fastest region that holds them, None if there is none."""
        planned = plan(self.buffers, self.alignment)
        for number, region in enumerate(self.capacities):
            if planned.total <= region.bytes and all(number in self.allowed[b.name] for b in self.buffers):
                return _Division(dict.fromkeys(self.sizes, number), planned.offsets, self.buffers)
        return None

    def orders(self) -> list[list[Buffer]]:
        """Return orders by traffic per byte and time, by traffic per byte, and the planner's."""

        def density(b: Buffer, time: int) -> float:
            return -self.traffic.get(b.name, 0) / max(self.sizes[b.name] * time, 1)

        return [
            sorted(self.buffers, key=lambda b: (density(b, b.last - b.first + 1), b.first, b.name)),
            sorted(self.buffers, key=lambda b: (density(b, 1), b.first, b.name)),
            *orders(self.buffers, self.sizes),
        ]

    def attempt(self, order: Sequence[Buffer]) -> _Division | None:
        """Return a first-fit division, None if none is found.

        After each failure the buffer that fits nowhere moves to the front.
        """
        turn = list(order)
        for _ in range(min(len(turn) + 1, self.steps)):
            attempted = self.first_fit(turn)
            if isinstance(attempted, _Division):
                return attempted
            turn.remove(attempted)
            turn.insert(0, attempted)
        return None

    def first_fit(self, order: Sequence[Buffer]) -> _Division | Buffer:
        """Place each buffer in its first region with a gap; return the first buffer that has none."""
        placed: list[list[Buffer]] = [[] for _ in self.capacities]
        regions: dict[str, int] = {}
        offsets: dict[str, int] = {}
        for buffer in order:
            size = self.sizes[buffer.name]
            for number in self.allowed[buffer.name]:
                offset = lowest_gap(buffer, placed[number], offsets, self.sizes)
                if offset + size <= self.capacities[number].bytes:
                    regions[buffer.name], offsets[buffer.name] = number, offset
                    placed[number].append(buffer)
                    break
            else:
                return buffer
        return _Division(regions, offsets, tuple(order))

    def cost(self, division: _Division) -> tuple[int, ...]:
        """Return the traffic of the slowest region, of the next, ...; then the bytes of all."""
        traffic, top = [0] * len(self.capacities), [0] * len(self.capacities)
        for name, number in division.regions.items():
            traffic[number] += self.traffic.get(name, 0)
            top[number] = max(top[number], division.offsets[name] + self.sizes[name])
        return (*traffic[:0:-1], sum(top))

    def best_of(self, divisions: Iterable[_Division | None]) -> _Division | None:
        """Return the cheapest division, None if there is none."""
        return min((division for division in divisions if division is not None), key=self.cost, default=None)

    def improved(self, best: _Division) -> _Division:
        """Return the division after a local search that moves buffers in slow regions forward."""
        chance = random.Random(0)  # fixed seed: the same graph gives the same plan
        for _ in range(self.steps):
            slow = [i for i, b in enumerate(best.order) if best.regions[b.name] != self.allowed[b.name][0]]
            if not slow:
                break
            order = list(best.order)
            number = chance.choice(slow)
            order.insert(chance.randrange(number + 1), order.pop(number))
            moved = self.first_fit(order)
            if isinstance(moved, _Division) and self.cost(moved) <= self.cost(best):
                best = moved
        return best

    def plans(self, division: _Division) -> dict[str, Plan]:
        """Return the plan of each region, planned alone if that fits."""
        plans = {}
        for number, region in enumerate(self.capacities):
            members = [b for b in self.buffers if division.regions[b.name] == number]
            if not members:
                continue
            alone = plan(members, self.alignment)
            if alone.total > region.bytes:
                offsets = {b.name: division.offsets[b.name] for b in members}
                total = max(offsets[b.name] + self.sizes[b.name] for b in members)
                alone = Plan(tuple(members), offsets, total, lower_bound(members, self.alignment), self.alignment)
            plans[region.region] = alone
        return plans
