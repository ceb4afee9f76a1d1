"""The least sum of costs: against all combinations, and what stays where tables would be too large."""

from itertools import product

import numpy as np
import pytest

from stages.tensorize.elimination import Costs, cheapest


def total(costs: list[Costs[str]], found: dict[str, int]) -> float:
    return float(sum(one.table[tuple(found[v] for v in one.variables)] for one in costs))


def drawn(seed: int) -> tuple[dict[str, int], list[Costs[str]]]:
    """Up to seven variables, tables over up to three of them, some entries infinite."""
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(1, 4)) for name in "abcdefg"[: rng.integers(2, 8)]}
    costs = []
    for _ in range(int(rng.integers(1, 9))):
        own = tuple(str(v) for v in rng.permutation(list(sizes))[: rng.integers(1, 4)])
        table = rng.integers(0, 20, [sizes[v] for v in own]).astype(float)
        table[rng.random(table.shape) < 0.1] = np.inf
        costs.append(Costs(own, table))
    return sizes, costs


@pytest.mark.parametrize("seed", range(40))
def test_no_combination_costs_less(seed: int) -> None:
    sizes, costs = drawn(seed)
    found = cheapest(sizes, costs)
    assert found.keys() == sizes.keys()
    all_of_them = (dict(zip(sizes, numbers, strict=True)) for numbers in product(*map(range, sizes.values())))
    assert total(costs, found) == min(total(costs, other) for other in all_of_them)


@pytest.mark.parametrize("seed", range(40))
def test_with_small_tables_nothing_gets_dearer_than_the_first_choices(seed: int) -> None:
    sizes, costs = drawn(seed)
    found = cheapest(sizes, costs, largest=3)
    assert total(costs, found) <= total(costs, dict.fromkeys(sizes, 0))


def test_a_long_chain_is_quick() -> None:
    chain = [Costs((f"{i}", f"{i + 1}"), np.array([[1.0, 3.0], [3.0, 0.5]])) for i in range(600)]
    ends = [Costs((name,), np.array([0.0, np.inf])) for name in ("0", "600")]
    found = cheapest({f"{i}": 2 for i in range(601)}, [*chain, *ends])
    assert sum(found.values()) == 599
