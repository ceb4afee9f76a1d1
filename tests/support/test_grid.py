"""A share of a grid has each of its values."""

from __future__ import annotations

from itertools import product

from tests.support.grid import covering


def test_each_value_of_a_grid_is_there_in_as_few_cases_as_can_be() -> None:
    grid = [{("layout", layout), ("dtype", dtype)} for layout, dtype in product(("NHWC", "NCHW", "none"), ("s8", "u8"))]
    kept = [grid[number] for number in covering(grid)]
    assert len(kept) == 3 and set().union(*kept) == set().union(*grid)


def test_cases_that_have_a_value_alone_all_stay() -> None:
    assert covering([{"a"}, {"b"}, {"a", "c"}, {"d"}]) == {1, 2, 3}
    assert covering([]) == covering([set()]) == set()
