"""Buffers over several memories: which lie in the fast ones, and at which offsets.

What is read and written most for the bytes that it takes, while it takes them, goes to the fastest memory in which
there is still room then; the others to the next. That is first-fit once more, with a choice of diagrams:

    dtcm  |  +-----+                          sram  |  +-----------------+
          |  |  b  +-----+                          |  |        d        |
          |  +--+--+  c  |                          |  +-----------------+
          +-----+--------+---> layer                +------------------------> layer

A buffer that finds no room in any goes first in the next attempt. All buffers in one memory is a plan too, so where one
can hold everything there is a plan, and none is chosen that has more traffic in the slow memories.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stages.lower.arena.planner import Buffer, Plan, lower_bound, lowest_gap, orders, plan, round_up

SEARCH_STEPS, LEAST_STEPS, SEARCH_PAIRS = 400, 8, 4_000_000
"""Attempts of each search: as many as compare so many pairs of buffers, within these bounds."""


@dataclass(frozen=True)
class RegionCapacity:
    """A memory and the bytes of it that buffers may take."""

    region: str
    bytes: int


class RegionOverflowError(Exception):
    """No division of the buffers was found that the rooms can hold."""


def divide(
    buffers: Iterable[Buffer],
    rooms: Sequence[RegionCapacity],
    traffic: Mapping[str, int],
    fixed: Mapping[str, str] | None = None,
    alignment: int = 16,
) -> dict[str, Plan]:
    """The plan of each region that holds a buffer, the fastest first. Deterministic.

    rooms    the fastest first
    traffic  bytes that are read and written, by buffer
    fixed    region by buffer, for those that may lie in that one only

    Raises RegionOverflowError if no division fits, KeyError for a buffer fixed to a region that is not in `rooms`.
    """
    task = _Task(tuple(buffers), tuple(rooms), traffic, fixed or {}, alignment)
    if task.is_hopeless():
        raise RegionOverflowError
    whole = task.in_one_room()
    if whole is not None and task.cost(whole)[:-1] == (0,) * (len(rooms) - 1):
        found: _Division | None = whole  # all in the fastest
    else:
        found = task.best_of([whole, *map(task.attempt, task.orders())])
        found = None if found is None else task.improved(found)
    if found is None:
        raise RegionOverflowError
    return task.plans(found)


@dataclass(frozen=True)
class _Division:
    """Number of the room and offset there of each buffer, and the order in which first-fit made it."""

    rooms: Mapping[str, int]
    offsets: Mapping[str, int]
    order: tuple[Buffer, ...]


class _Task:
    def __init__(
        self,
        buffers: tuple[Buffer, ...],
        rooms: tuple[RegionCapacity, ...],
        traffic: Mapping[str, int],
        fixed: Mapping[str, str],
        alignment: int,
    ) -> None:
        self.buffers = buffers
        self.rooms = rooms
        self.traffic = traffic
        self.alignment = alignment
        self.sizes = {b.name: round_up(b.bytes, alignment) for b in buffers}
        pairs = max(len(buffers) ** 2, 1)
        self.steps = max(min(SEARCH_STEPS, SEARCH_PAIRS // pairs), LEAST_STEPS)
        numbers = {room.region: number for number, room in enumerate(rooms)}
        anywhere = tuple(range(len(rooms)))
        self.allowed = {b.name: (numbers[fixed[b.name]],) if b.name in fixed else anywhere for b in buffers}

    def is_hopeless(self) -> bool:
        """Whether more is alive at one layer than all rooms have, or a buffer is larger than any that it may lie in."""
        most = lower_bound(self.buffers, self.alignment)
        return most > sum(room.bytes for room in self.rooms) or any(
            self.sizes[name] > max(self.rooms[number].bytes for number in able) for name, able in self.allowed.items()
        )

    def in_one_room(self) -> _Division | None:
        """All buffers in the fastest room that holds them and that each may lie in."""
        made = plan(self.buffers, self.alignment)
        for number, room in enumerate(self.rooms):
            if made.total <= room.bytes and all(number in self.allowed[b.name] for b in self.buffers):
                return _Division(dict.fromkeys(self.sizes, number), made.offsets, self.buffers)
        return None

    def orders(self) -> list[list[Buffer]]:
        """By traffic for the memory taken, for the bytes alone, and those of the planner of one arena."""

        def density(b: Buffer, time: int) -> float:
            return -self.traffic.get(b.name, 0) / max(self.sizes[b.name] * time, 1)

        return [
            sorted(self.buffers, key=lambda b: (density(b, b.last - b.first + 1), b.first, b.name)),
            sorted(self.buffers, key=lambda b: (density(b, 1), b.first, b.name)),
            *orders(self.buffers, self.sizes),
        ]

    def attempt(self, order: Sequence[Buffer]) -> _Division | None:
        """First-fit in this order, then each time with the buffer in front that found no room; None when none will."""
        turn = list(order)
        for _ in range(min(len(turn) + 1, self.steps)):
            made = self.first_fit(turn)
            if isinstance(made, _Division):
                return made
            turn.remove(made)
            turn.insert(0, made)
        return None

    def first_fit(self, order: Sequence[Buffer]) -> _Division | Buffer:
        """Each buffer in the first of its rooms that has a gap for it; else the buffer for which none has."""
        placed: list[list[Buffer]] = [[] for _ in self.rooms]
        rooms: dict[str, int] = {}
        offsets: dict[str, int] = {}
        for buffer in order:
            size = self.sizes[buffer.name]
            for number in self.allowed[buffer.name]:
                offset = lowest_gap(buffer, placed[number], offsets, self.sizes)
                if offset + size <= self.rooms[number].bytes:
                    rooms[buffer.name], offsets[buffer.name] = number, offset
                    placed[number].append(buffer)
                    break
            else:
                return buffer
        return _Division(rooms, offsets, tuple(order))

    def cost(self, division: _Division) -> tuple[int, ...]:
        """The smaller the better: the traffic of the slowest room, of the next, ...; then the bytes of all rooms."""
        traffic, top = [0] * len(self.rooms), [0] * len(self.rooms)
        for name, number in division.rooms.items():
            traffic[number] += self.traffic.get(name, 0)
            top[number] = max(top[number], division.offsets[name] + self.sizes[name])
        return (*traffic[:0:-1], sum(top))

    def best_of(self, divisions: Iterable[_Division | None]) -> _Division | None:
        return min((one for one in divisions if one is not None), key=self.cost, default=None)

    def improved(self, best: _Division) -> _Division:
        """What comes of moving buffers that lie in slow rooms to an earlier turn."""
        chance = random.Random(0)  # fixed seed: the same graph gives the same plan
        for _ in range(self.steps):
            slow = [i for i, b in enumerate(best.order) if best.rooms[b.name] != self.allowed[b.name][0]]
            if not slow:
                break
            order = list(best.order)
            number = chance.choice(slow)
            order.insert(chance.randrange(number + 1), order.pop(number))
            made = self.first_fit(order)
            if isinstance(made, _Division) and self.cost(made) <= self.cost(best):
                best = made
        return best

    def plans(self, division: _Division) -> dict[str, Plan]:
        """Each region's buffers planned by themselves, unless that takes more than its room has."""
        made = {}
        for number, room in enumerate(self.rooms):
            mine = [b for b in self.buffers if division.rooms[b.name] == number]
            if not mine:
                continue
            alone = plan(mine, self.alignment)
            if alone.total > room.bytes:
                offsets = {b.name: division.offsets[b.name] for b in mine}
                total = max(offsets[b.name] + self.sizes[b.name] for b in mine)
                alone = Plan(tuple(mine), offsets, total, lower_bound(mine, self.alignment), self.alignment)
            made[room.region] = alone
        return made
