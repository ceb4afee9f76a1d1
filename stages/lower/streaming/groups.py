"""Where streamed groups begin and end, and how many rows their layers make in a call.

A group begins and ends at *cuts*, places between two layers where exactly one tensor is alive. The search is exact for
its candidates: all pairs of cuts, each with a few schedules. Only promising pairs are simulated: a lower bound of their
bytes decides which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from stages.lower.streaming.network import Described, RowNetwork
from stages.lower.streaming.schedule import RowLayer, Schedule, simulate

LOCKSTEPS = (1, 2, 4, 8)
"""Rows of the group's last layer per step; each layer before makes as many as its readers need."""
EQUAL_ROWS = (1, 2, 4)
"""Rows per call of every layer."""
CALL_COST, BYTE_COST = 60.0, 0.3
"""Estimated instructions of a call with its conditions, and of a moved byte."""

BandCost = Callable[[int, int], float]
"""Return the instructions of a call of layer `index` for `rows` rows; infinity if no kernel can compute it."""


@dataclass(frozen=True)
class Group:
    """Layers [first, end) with their schedule.

    pushed  name of the input whose rows the caller passes, '' if there is none
    bytes   memory in use while it runs: whole input and output, rolling buffers
    extra   estimated instructions beyond those of whole images
    """

    first: int
    end: int
    described: Described
    schedule: Schedule
    pushed: str
    bytes: int
    extra: float


@dataclass(frozen=True)
class Grouping:
    """Groups, the largest memory at any time without scratch, and the extra instructions."""

    groups: tuple[Group, ...]
    bytes: int
    extra: float


class _Edge(NamedTuple):
    """Layers [first, end): a group, or layers that compute whole images. A group that is not simulated yet is None."""

    first: int
    end: int
    bytes: float
    extra: float
    group: Group | None
    whole: bool


@dataclass
class GroupSearch:
    """The search for one network.

    live   bytes in use at each layer if it computes whole images
    whole  instructions of each layer for whole images
    band   instructions of a call
    fixed  layers that make one row in a call
    """

    network: RowNetwork
    live: Sequence[int]
    whole: Sequence[float]
    band: BandCost
    fixed: frozenset[int] = frozenset()
    _groups: dict[tuple[int, int], list[Group]] = field(default_factory=dict)
    _bounds: dict[tuple[int, int], float] = field(default_factory=dict)

    def best(self, share: float, limit: int | None = None) -> Grouping:
        """Return the smallest arena whose extra instructions are at most `share` of all.

        With a `limit` in bytes: the cheapest grouping within it, else the smallest of all.
        """
        smallest = self._path(inf)
        if smallest is None:
            return self._unchanged()
        if limit is not None and smallest.bytes > limit:
            return smallest
        if limit is not None:
            return self._path(limit, cheapest=True) or smallest
        most = share * sum(self.whole)
        if smallest.extra <= most:
            return self._path(smallest.bytes, cheapest=True) or smallest
        simulated = {group.bytes for groups in self._groups.values() for group in groups}
        caps = sorted(size for size in simulated | set(self.live) if size > smallest.bytes)
        low, high, best = 0, len(caps) - 1, self._unchanged()
        while low <= high:
            middle = (low + high) // 2
            grouping = self._path(caps[middle], cheapest=True)
            if grouping is not None and grouping.extra <= most:
                best, high = grouping, middle - 1
            else:
                low = middle + 1
        return best

    def _unchanged(self) -> Grouping:
        return Grouping((), max(self.live, default=0), 0.0)

    def _path(self, cap: float, cheapest: bool = False) -> Grouping | None:
        """Return the groups of the smallest arena, or the cheapest ones of at most `cap` bytes; None without any."""
        while True:
            path = self._shortest(cap, cheapest)
            if path is None:
                return None
            unknown = [edge for edge in path if edge.group is None and not edge.whole]
            if not unknown:
                groups = tuple(edge.group for edge in path if edge.group is not None)
                return Grouping(groups, int(max(edge.bytes for edge in path)), sum(edge.extra for edge in path))
            for edge in unknown:
                self._groups[edge.first, edge.end] = self._simulated(edge.first, edge.end)

    def _shortest(self, cap: float, cheapest: bool) -> list[_Edge] | None:
        """Return the best path over the cuts, with lower bounds for groups that are not simulated yet."""
        places = list(self.network.cuts)
        best: dict[int, tuple[tuple[float, float], _Edge | None]] = {0: ((0.0, 0.0), None)}
        for number, end in enumerate(places[1:], 1):
            for before, first in enumerate(places[:number]):
                if first not in best:
                    continue
                size, extra = best[first][0]
                for edge in self._edges(first, end, before == number - 1):
                    if edge.bytes > cap:
                        continue
                    total = max(size, edge.bytes), extra + edge.extra
                    if end not in best or _order(total, cheapest) < _order(best[end][0], cheapest):
                        best[end] = total, edge
        place, path = places[-1], []
        if place not in best:
            return None
        while place:
            taken = best[place][1]
            assert taken is not None
            path.append(taken)
            place = taken.first
        return path[::-1]

    def _edges(self, first: int, end: int, adjacent: bool) -> list[_Edge]:
        edges = []
        pushed = self.network.is_pushed(first)
        if adjacent and not pushed:
            edges.append(_Edge(first, end, max(self.live[first:end]), 0.0, None, True))
        if (first, end) in self._groups:
            groups = self._groups[first, end]
            edges += [_Edge(first, end, group.bytes, group.extra, group, False) for group in groups]
        elif end - first > 1 or pushed:  # a single layer has no inner tensors
            bound = self._bound(first, end)
            if bound < inf:
                edges.append(_Edge(first, end, bound, 1.0, None, False))
        return edges

    def _bound(self, first: int, end: int) -> float:
        """Return a lower bound of a group's bytes; infinity if these layers are no group."""
        if (first, end) not in self._bounds:
            described = self.network.described(first, end)
            self._bounds[first, end] = inf if described is None else _least_bytes(described)
        return self._bounds[first, end]

    def _simulated(self, first: int, end: int) -> list[Group]:
        """Return the group with each of its schedules."""
        groups: dict[tuple[int, ...], Group] = {}
        for rows in self._row_counts(first, end):
            described = self.network.described(first, end, rows)
            key = () if described is None else tuple(layer.rows for layer in described.layers)
            if described is None or key in groups:
                continue
            layers, tensors, source = described
            cost = sum(map(self._layer_cost, layers))
            if cost == inf:
                continue
            pushed = source if self.network.is_pushed(first) else ""
            schedule = simulate(layers, tensors, pushed, self.network.alignment)
            if not schedule.aligned or not schedule.intact:
                continue
            own = [tensor for tensor in tensors.values() if tensor.whole and not tensor.place_of]
            whole = sum(tensor.total * tensor.row_bytes for tensor in own)
            held = sum(rows * tensors[name].row_bytes for name, rows in schedule.capacity.items())
            extra = cost - sum(self.whole[first:end])
            extra += CALL_COST * len(schedule.firings) + BYTE_COST * schedule.moved
            groups[key] = Group(first, end, described, schedule, pushed, whole + held, extra)
        return list(groups.values())

    def _layer_cost(self, layer: RowLayer) -> float:
        calls, rest = divmod(layer.height, layer.rows)
        cost = calls * self.band(layer.index, layer.rows)
        return cost + self.band(layer.index, rest) if rest else cost

    def _row_counts(self, first: int, end: int) -> list[dict[int, int]]:
        """Return candidates of the rows per call of each layer."""
        described = self.network.described(first, end)
        if described is None:
            return []
        layers = described.layers
        counts = []
        for step in LOCKSTEPS:
            rows: dict[int, int] = {}
            for layer in reversed(layers):
                readers = [other for other in layers if layer.output in other.inputs]
                wanted = max((rows[other.index] * other.window.stride for other in readers), default=step)
                rows[layer.index] = wanted
            counts.append(rows)
        counts += [{layer.index: number for layer in layers} for number in EQUAL_ROWS]
        return [{**rows, **dict.fromkeys(self.fixed & rows.keys(), 1)} for rows in counts]


def _order(total: tuple[float, float], cheapest: bool) -> tuple[float, float]:
    return (total[1], total[0]) if cheapest else total


def _least_bytes(described: Described) -> int:
    """Return bytes that a group needs in any case."""
    layers, tensors, _ = described
    size = 0
    for name, tensor in tensors.items():
        if tensor.place_of:
            continue
        if tensor.whole:
            size += tensor.total * tensor.row_bytes
        else:
            size += max(layer.window.size for layer in layers if name in layer.inputs) * tensor.row_bytes
    return size
