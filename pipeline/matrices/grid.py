"""The combinations of a matrix's axes, without those that are excluded: counted before any is made.

An axis is the number of its values, an exclusion the values that it means on some of the axes. Counting follows the
axes from first to last and remembers what is left to be excluded: values that leave the same exclusions open count
alike, so a million combinations of which exclusions leave ten cost what ten do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

# How many cases counting may tell apart; beyond, nobody has written the exclusions by hand.
_MOST_CASES = 20_000


class Uncountable(Exception):
    """The exclusions are too many to count what they leave."""


class Grid:
    """Combinations of `sizes[0] * sizes[1] * ...` values, by their numbers on each axis."""

    def __init__(self, sizes: Sequence[int], excluded: Sequence[Mapping[int, frozenset[int]]]) -> None:
        self._sizes = tuple(sizes)
        self._excluded = [entry for entry in excluded if all(entry.values())]
        self._last = [max(entry, default=-1) for entry in self._excluded]
        self._counted: dict[tuple[int, frozenset[int]], int] = {}
        self._all = frozenset(range(len(self._excluded)))

    @property
    def product(self) -> int:
        """How many combinations there are with the excluded ones."""
        return prod(self._sizes)

    def count(self) -> int:
        """How many combinations there are. Raises Uncountable."""
        return 0 if -1 in self._last else self._count(0, self._all)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """The combinations, those of the last axis next to each other. Raises Uncountable."""
        if self.count():
            yield from self._below((), self._all)

    def _below(self, chosen: tuple[int, ...], still: frozenset[int]) -> Iterator[tuple[int, ...]]:
        axis = len(chosen)
        if axis == len(self._sizes):
            yield chosen
            return
        for value in range(self._sizes[axis]):
            left = self._after(axis, value, still)
            if left is not None and self._count(axis + 1, left):
                yield from self._below((*chosen, value), left)

    def _count(self, axis: int, still: frozenset[int]) -> int:
        """The combinations of the values from `axis` on, where the exclusions `still` have agreed so far."""
        if not still:
            return prod(self._sizes[axis:])
        if axis == len(self._sizes):
            return 1
        known = self._counted.get((axis, still))
        if known is None:
            if len(self._counted) >= _MOST_CASES:
                raise Uncountable
            known = 0
            for value in range(self._sizes[axis]):
                left = self._after(axis, value, still)
                known += 0 if left is None else self._count(axis + 1, left)
            self._counted[axis, still] = known
        return known

    def _after(self, axis: int, value: int, still: frozenset[int]) -> frozenset[int] | None:
        """Which of `still` agree with this value too, None when one of them is thereby complete."""
        left = []
        for number in still:
            values = self._excluded[number].get(axis)
            if values is None:
                left.append(number)
            elif value in values:
                if self._last[number] == axis:
                    return None
                left.append(number)
        return frozenset(left)
