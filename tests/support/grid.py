"""Of a test over a grid of values: few cases that have each value once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import pytest


def beside_cover(items: Iterable[pytest.Item]) -> set[int]:
    """Return the ids of the cases that tests marked `grid` can do without: others have each of their values."""
    grids: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("grid"):
            grids.setdefault(item.nodeid.partition("[")[0], []).append(item)
    superfluous: set[int] = set()
    for cases in grids.values():
        specs = [getattr(case, "callspec", None) for case in cases]
        kept = covering(
            [{(name, repr(value)) for name, value in spec.params.items()} if spec else {""} for spec in specs]
        )
        superfluous |= {id(case) for number, case in enumerate(cases) if number not in kept}
    return superfluous


def covering(values: Sequence[Iterable[Hashable]]) -> set[int]:
    """Return numbers of cases that have all values together, by a greedy set cover."""
    sets = [frozenset(each) for each in values]
    missing, cover = frozenset[Hashable]().union(*sets), set()
    while missing:
        best = max(range(len(sets)), key=lambda number: len(sets[number] & missing))
        cover.add(best)
        missing -= sets[best]
    return cover
