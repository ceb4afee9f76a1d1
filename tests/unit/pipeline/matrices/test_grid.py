"""Combinations without the excluded ones: as many as there are, in order, and counted without making them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.matrices.grid import Grid, Uncountable


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[int], list[dict[int, frozenset[int]]]]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    axes = st.integers(0, len(sizes) - 1)
    entry = st.dictionaries(axes, st.frozensets(st.integers(0, 3), max_size=3), max_size=3)
    return sizes, draw(st.lists(entry, max_size=5))


@given(grids())
def test_as_if_all_were_made(drawn: tuple[list[int], list[dict[int, frozenset[int]]]]) -> None:
    sizes, excluded = drawn
    expected = [
        numbers
        for numbers in product(*map(range, sizes))
        if not any(all(numbers[axis] in values for axis, values in entry.items()) for entry in excluded)
    ]
    grid = Grid(sizes, excluded)
    assert list(grid) == expected
    assert grid.count() == len(expected)
    assert grid.product == len(list(product(*map(range, sizes))))


def test_huge_products_are_counted_and_walked() -> None:
    """Of 10^40 combinations, exclusions leave two."""
    size = 10_000
    excluded = [{axis: frozenset(range(1, size))} for axis in range(9)] + [{9: frozenset(range(2, size))}]
    grid = Grid([size] * 10, excluded)
    assert grid.product == 10**40
    assert list(grid) == [(0,) * 10, (0,) * 9 + (1,)]


def test_exclusions_beyond_counting() -> None:
    excluded = [{axis: frozenset({0}), axis + 20: frozenset({0})} for axis in range(20)]
    with pytest.raises(Uncountable):
        Grid([2] * 40, excluded).count()
