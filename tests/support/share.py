"""Of tests over a grid of values, as few cases as have each value once: what a change runs of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import pytest


def left_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The cases of tests marked `share` that have no value of a parameter which others do not have."""
    grids: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("share"):
            grids.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found: list[pytest.Item] = []
    for cases in grids.values():
        given = [getattr(case, "callspec", None) for case in cases]
        kept = covering([{(name, repr(value)) for name, value in one.params.items()} if one else {""} for one in given])
        found += [case for number, case in enumerate(cases) if number not in kept]
    return found


def covering(values: Sequence[Iterable[Hashable]]) -> set[int]:
    """Numbers of cases that have all values together: always the first of those with most that are missing."""
    having = [frozenset(each) for each in values]
    missing, found = frozenset[Hashable]().union(*having), set()
    while missing:
        best = max(range(len(having)), key=lambda number: len(having[number] & missing))
        found.add(best)
        missing -= having[best]
    return found
