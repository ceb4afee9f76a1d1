"""What a run without --all leaves out: the rest of grids, and tests that exist."""

from __future__ import annotations

from itertools import product

from tests.support.selection import TESTS, covering, rare


def test_each_value_of_a_grid_is_there_in_as_few_cases_as_can_be() -> None:
    grid = [{("layout", layout), ("dtype", dtype)} for layout, dtype in product(("NHWC", "NCHW", "none"), ("s8", "u8"))]
    kept = [grid[number] for number in covering(grid)]
    assert len(kept) == 3 and set().union(*kept) == set().union(*grid)


def test_cases_that_have_a_value_alone_all_stay() -> None:
    assert covering([{"a"}, {"b"}, {"a", "c"}, {"d"}]) == {1, 2, 3}
    assert covering([]) == covering([set()]) == set()


def test_what_is_rare_exists() -> None:
    for prefix in rare():
        path, _, test = prefix.partition("::")
        assert (TESTS / path).exists(), prefix
        assert f"def {test}" in (TESTS / path).read_text() if test else True, prefix
