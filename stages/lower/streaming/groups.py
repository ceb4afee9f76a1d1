"""Where streamed groups begin and end, and how many rows their layers make in a call.

A group begins and ends at *cuts*, places between two layers where exactly one tensor is alive. The search is exact for
its candidates: all pairs of cuts, each with a few schedules. Only promising pairs are simulated: a lower bound of their
bytes decides which.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf
from operator import attrgetter
from typing import NamedTuple

from stages.lower.streaming.network import Described, RowNetwork
from stages.lower.streaming.row_counts import in_phase, row_counts
from stages.lower.streaming.schedule import RowLayer, Schedule

ROWS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Rows per call of single layers, to improve a group."""
_BISECTIONS = 16
_EXCLUSIONS = 4
_WORTH_CODE = 1024  # bytes that a group must save, or a sixteenth of the arena: it may take kilobytes of code


class BandCost(NamedTuple):
    """The instructions of a call, infinity if no kernel can compute it.

    alignment  of its rows in bytes
    in_place   its output may take the place of an input
    scratch    bytes that it needs beside its tensors
    """

    instructions: float
    alignment: int = 1
    in_place: bool = True
    scratch: int = 0


@dataclass(frozen=True)
class Group:
    """Layers [first, end) with their schedule.

    pushed  name of the input whose rows the caller passes, '' if there is none
    distance  as in the schedule, None if its output may not overlap its input
    bytes   memory in use while it runs: whole input and output, rolling buffers, scratch
    scratch  bytes of the kernels' scratch
    extra   estimated instructions beyond those of whole images
    """

    first: int
    end: int
    described: Described
    schedule: Schedule
    pushed: str
    distance: int | None
    bytes: int
    extra: float
    scratch: int = 0


@dataclass(frozen=True)
class Grouping:
    """Groups, the largest memory at any time, and the extra instructions.

    others  the largest memory while layers outside of groups run
    """

    groups: tuple[Group, ...]
    bytes: int
    extra: float
    others: int = 0


class _Edge(NamedTuple):
    """Layers [first, end): a group, or layers that compute whole images.

    A group that is not simulated yet is None.
    """

    first: int
    end: int
    bytes: float
    extra: float
    group: Group | None
    whole: bool


@dataclass
class GroupSearch:
    """The search for one network.

    live   bytes in use at each layer if it computes whole images, with its scratch
    whole  instructions of each layer for whole images
    band   cost of a call of layer `index` for `rows` rows, with the kernel of its calls for `like` rows if that is able
    packed  bytes of an arena for a grouping, at least `Grouping.bytes`
    """

    network: RowNetwork
    live: Sequence[int]
    whole: Sequence[float]
    band: Callable[[int, int, int], BandCost]
    packed: Callable[[Grouping], int] = attrgetter("bytes")
    _excluded: frozenset[tuple[int, int]] = frozenset()
    _groups: dict[tuple[int, int], list[Group]] = field(default_factory=dict)
    _bounds: dict[tuple[int, int], float] = field(default_factory=dict)
    _known: dict[tuple[int, int], dict[tuple[int, ...], Group | None]] = field(default_factory=dict)  # by rows

    def __post_init__(self) -> None:
        """Ask for the cost of each call once."""
        self.band = cache(self.band)
        self._cost = cache(self._cost)  # type: ignore[method-assign]

    def best(self, share: float, limit: int | None = None) -> Grouping:
        """Return the smallest arena whose extra instructions are at most `share` of all.

        If the application passes or receives rows: at most `share` more than the cheapest grouping for that.
        If that exceeds a `limit` in bytes: the cheapest grouping within the limit, else the smallest of all.
        """
        self._excluded = frozenset()
        smallest = self._path(inf)
        if smallest is None:
            return self._unchanged()
        most = share * sum(self.whole)
        if self.network.by_request:  # what the rows of the input or output cost in any case
            cheapest = self._within(inf)
            most += max(0.0, cheapest.extra if cheapest is not None else 0.0)
        best = self._best_packed(smallest, lambda around: self._smallest(most, around))
        if limit is not None and self.packed(best) > limit:
            self._excluded = frozenset()
            best = self._best_packed(smallest, lambda around: self._fitting(limit, around), limit)
        if self.network.by_request:
            return best
        best, unchanged = best if limit is not None else self._worth_their_code(best), self._unchanged()
        return best if self.packed(best) < self.packed(unchanged) else unchanged

    def _worth_their_code(self, best: Grouping) -> Grouping:
        """Return the groups whose layers would need clearly more memory with whole images."""
        enough = best.bytes + min(_WORTH_CODE, best.bytes // 16)
        dropped = [group for group in best.groups if max(self.live[group.first : group.end]) <= enough]
        groups = tuple(group for group in best.groups if group not in dropped)
        others = max([best.others, *(max(self.live[group.first : group.end]) for group in dropped)])
        extra = best.extra - sum(group.extra for group in dropped)
        return Grouping(groups, max(best.bytes, others), extra, others)

    def _fitting(self, limit: int, smallest: Grouping) -> Grouping:
        """Return the cheapest groups with an arena of at most `limit` bytes, or `smallest`."""
        cap = max(limit, smallest.bytes)
        while grouping := self._within(cap):
            if (over := self.packed(grouping) - limit) <= 0:
                return grouping
            cap = min(cap - over, grouping.bytes - 1)
        return smallest

    def _best_packed(self, around: Grouping, selected: Callable[[Grouping], Grouping], limit: int = 0) -> Grouping:
        """Return the selected groups, or fewer of them if the arena gets smaller.

        The overlaps of consecutive groups may conflict, so that the arena is larger than `Grouping.bytes`.
        around    the smallest arena of any cost
        selected  returns the wanted groups, given the smallest arena of any cost
        limit     bytes of an arena that is small enough
        """
        best = around = selected(around)
        size = self.packed(best)
        for _ in range(_EXCLUSIONS):
            if size <= max(limit, around.bytes + around.bytes // 100):
                break
            excluded = [self._excluded | {(group.first, group.end)} for group in around.groups]
            others: list[tuple[int, float, int, Grouping, frozenset[tuple[int, int]]]] = []
            for self._excluded in excluded:
                other = self._path(inf)
                if other is not None and other.bytes < size:
                    others.append((self.packed(other), other.extra, len(others), other, self._excluded))
            if not others:
                break
            *_, around, self._excluded = min(others)
            other = selected(around)
            if (other_size := self.packed(other)) < size:
                best, size = other, other_size
        return best

    def _smallest(self, most: float, smallest: Grouping) -> Grouping:
        """Return the smallest arena of at most `most` extra instructions; `smallest`: at any cost."""
        best = self._unchanged() if not self.network.by_request else self._path(inf, cheapest=True) or smallest
        cap = failed = smallest.bytes
        for _ in range(_BISECTIONS):
            grouping = self._within(cap)
            if grouping is not None and grouping.extra <= most:
                best = min(best, grouping, key=attrgetter("bytes"))
            else:
                failed = cap
            cap = (failed + best.bytes) // 2
            if not failed < cap < best.bytes:
                break
        return best

    def _within(self, cap: float) -> Grouping | None:
        """Return the cheapest groups of at most `cap` bytes; None if there are none."""
        # With other rows per call, the groups of the smallest arena may be cheaper than the cheapest ones.
        paths = filter(None, (self._path(cap, cheapest=True), self._path(cap)))
        return min((self._refined(path, cap) for path in paths), key=attrgetter("extra"), default=None)

    def least_bytes(self, first: int, end: int) -> float:
        """Return the fewest bytes of layers [first, end) as a group, or a lower bound of them."""
        if (first, end) in self._groups:
            return min((group.bytes for group in self._groups[first, end]), default=inf)
        return self._bound(first, end)

    def _unchanged(self) -> Grouping:
        return Grouping((), max(self.live, default=0), 0.0, max(self.live, default=0))

    def _path(self, cap: float, cheapest: bool = False) -> Grouping | None:
        """Return the groups of the smallest arena, or the cheapest of `cap` bytes, or None."""
        while True:
            path = self._shortest(cap, cheapest)
            if path is None:
                return None
            unknown = [edge for edge in path if edge.group is None and not edge.whole]
            if not unknown:
                groups = tuple(edge.group for edge in path if edge.group is not None)
                others = max((edge.bytes for edge in path if edge.whole), default=0)
                size = max(edge.bytes for edge in path)
                return Grouping(groups, int(size), sum(edge.extra for edge in path), int(others))
            for edge in unknown:
                self._groups[edge.first, edge.end] = self._simulated(edge.first, edge.end)

    def _shortest(self, cap: float, cheapest: bool) -> list[_Edge] | None:
        """Return the best path over the cuts, with lower bounds for unsimulated groups."""
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
            last_edge = best[place][1]
            assert last_edge is not None
            path.append(last_edge)
            place = last_edge.first
        return path[::-1]

    def _edges(self, first: int, end: int, adjacent: bool) -> list[_Edge]:
        edges = []
        by_request = self.network.is_pushed(first) or self.network.is_emitted(end)
        if adjacent and not by_request:
            edges.append(_Edge(first, end, max(self.live[first:end]), 0.0, None, True))
        if (first, end) in self._excluded:
            return edges
        if (first, end) in self._groups:
            groups = self._groups[first, end]
            edges += [_Edge(first, end, group.bytes, group.extra, group, False) for group in groups]
        elif end - first > 1 or by_request or self.network.may_overlap(self.network.cuts[first], end):
            # Otherwise a single layer saves nothing.
            bound = self._bound(first, end)
            if bound < inf:
                edges.append(_Edge(first, end, bound, 1.0, None, False))
        return edges

    def _bound(self, first: int, end: int) -> float:
        """Return a lower bound of a group's bytes; infinity if these layers are no group."""
        if (first, end) not in self._bounds:
            described = self.network.described(first, end)
            overlaps = self.network.may_overlap(self.network.cuts[first], end)
            self._bounds[first, end] = inf if described is None else described.least_bytes(overlaps)
        return self._bounds[first, end]

    def _simulated(self, first: int, end: int) -> list[Group]:
        """Return the group with each of its schedules."""
        groups = [self._group(first, end, rows) for rows in dict.fromkeys(self._row_counts(first, end))]
        return [group for group in groups if group is not None]

    def _group(self, first: int, end: int, rows: tuple[int, ...]) -> Group | None:
        """Return layers [first, end) as a group with these rows per call, None if impossible."""
        known = self._known.setdefault((first, end), {})
        if rows not in known:
            layers = tuple(map(self.network.row_layer, range(first, end), rows))
            candidates = dict.fromkeys((layers, in_phase(layers)))
            groups = filter(None, (self._evaluated(first, end, candidate) for candidate in candidates))
            known[rows] = min(groups, key=attrgetter("bytes", "extra"), default=None)
        return known[rows]

    def _evaluated(self, first: int, end: int, layers: tuple[RowLayer, ...]) -> Group | None:
        costs = list(map(self._cost, layers))
        cost = sum(calls.instructions for calls in costs)
        if cost == inf:
            return None
        in_place = (layer.index for layer, calls in zip(layers, costs, strict=True) if calls.in_place)
        described = self.network.described(first, end, self.network.overlaid.intersection(in_place))
        assert described is not None
        _, tensors, source, outline = described
        whole = [tensor.total * tensor.row_bytes for tensor in tensors.values() if tensor.whole and not tensor.place_of]
        overlaps = len(whole) == 2 and self.network.may_overlap(source, end)
        schedule = outline.schedule(layers, tuple(calls.alignment for calls in costs), overlaps=overlaps)
        if not schedule.aligned or not schedule.intact:
            return None
        size = sum(whole)
        if schedule.distance is not None:
            size = max(*whole, schedule.distance - tensors[source].above * tensors[source].row_bytes + whole[0])
        size += sum(rows * tensors[name].row_bytes for name, rows in schedule.capacity.items())
        extra = cost - sum(self.whole[first:end]) + schedule.overhead
        sums = [layer.window.accumulates for layer in layers]  # their scratch is in use from the first call on
        scratch = max((x.scratch for x, is_sum in zip(costs, sums, strict=True) if not is_sum), default=0)
        scratch += sum(x.scratch for x, is_sum in zip(costs, sums, strict=True) if is_sum)
        pushed = source if self.network.is_pushed(first) else ""
        described = described._replace(layers=layers)
        return Group(first, end, described, schedule, pushed, schedule.distance, size + scratch, extra, scratch)

    def _refined(self, grouping: Grouping, cap: float) -> Grouping:
        """Return the groups with cheaper rows per call, layer by layer, within `cap` bytes."""
        groups = tuple(self._refined_group(group, cap) for group in grouping.groups)
        changed = sum(group.extra for group in groups) - sum(group.extra for group in grouping.groups)
        size = max([grouping.others, *(group.bytes for group in groups)])
        return Grouping(groups, size, grouping.extra + changed, grouping.others)

    def _refined_group(self, group: Group, cap: float) -> Group:
        """Return the cheapest group of the same layers within `cap` bytes that the search finds.

        It looks for the price of a byte at which the best group just fits, and evaluates groups near that one.
        """
        groups = self._groups[group.first, group.end]
        fitting, larger = min(groups, key=attrgetter("bytes")), min(groups, key=attrgetter("extra"))
        while larger.bytes > cap and larger.extra < fitting.extra:
            price = (fitting.extra - larger.extra) / (larger.bytes - fitting.bytes)
            other = self._descended(fitting, price)
            if other is fitting:
                break
            fitting, larger = (other, larger) if other.bytes <= cap else (fitting, other)
        known = self._known[group.first, group.end].values()
        return min((x for x in known if x is not None and x.bytes <= cap), key=lambda x: (x.extra, x.bytes))

    def _descended(self, group: Group, price: float) -> Group:
        """Return a group that no other rows of a layer, or of all from one on, make better.

        price  instructions that a byte is worth
        """

        def cost(other: Group) -> float:
            return other.extra + price * other.bytes

        heights = [layer.height for layer in group.described.layers]
        equal = [tuple(min(count, height) for height in heights) for count in ROWS]
        before = None
        while group is not before:
            before = group
            for place in range(len(heights)):
                rows = tuple(layer.rows for layer in group.described.layers)
                ends = sorted({place + 1, len(heights)})
                changes = [(*rows[:place], *counts[place:end], *rows[end:]) for end in ends for counts in equal]
                changed = (self._group(group.first, group.end, change) for change in changes)
                best = min((other for other in changed if other), key=cost, default=group)
                group = best if cost(best) < cost(group) - 1 else group
        return group

    def _cost(self, layer: RowLayer) -> BandCost:
        """Return the instructions of all calls of a layer, and what holds for each of them."""
        calls = layer.calls()
        costs = [self.band(layer.index, rows, layer.rows) for rows in calls]
        return BandCost(
            sum(number * cost.instructions for number, cost in zip(calls.values(), costs, strict=True)),
            max(cost.alignment for cost in costs),
            all(cost.in_place for cost in costs),
            max(cost.scratch for cost in costs),
        )

    def _row_counts(self, first: int, end: int) -> list[tuple[int, ...]]:
        """Return candidates of the rows per call of each layer."""
        described = self.network.described(first, end)
        return [] if described is None else row_counts(described.layers)


def _order(total: tuple[float, float], cheapest: bool) -> tuple[float, float]:
    return (total[1], total[0]) if cheapest else total
