"""tests.removable_kernels: which kernels go, on costs made up for the test."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from stages.graph import Graph
from tests.removable_kernels import LAYER, NETWORK, Item, Result, removable

COSTS = {
    "first": {"best": 100.0, "twin": 100.5},
    "second": {"twin": 100.0, "best": 100.5},
    "layer": {"rare": 90.0, "common": 100.0},
    "third": {"common": 100.0, "slow": 102.0},
}
SCRATCH = {"lean": 10, "wide": 20}


class _Core:
    """Takes the cheapest kernel that is left of each item's."""

    setting = SimpleNamespace(target=SimpleNamespace(name="core"))

    def __init__(self, costs: dict[str, dict[str, float]]) -> None:
        self.costs = costs
        self.items = [Item(name, LAYER if name == "layer" else NETWORK, Graph()) for name in costs]

    def count_for(self, wanted: Iterable[Any]) -> None:
        """Everything is known."""

    def result(self, item: Item, gone: frozenset[str]) -> Result:
        left = {name: cost for name, cost in self.costs[item.name].items() if name not in gone}
        if not left:
            return Result(frozenset(), float("inf"), None)
        name = min(left, key=left.__getitem__)
        chosen: Any = name
        return Result(frozenset({name}), left[name], chosen, SCRATCH.get(name, 0))

    def arena(self, result: Result) -> int:
        return result.arena or 0


def _removed(costs: dict[str, dict[str, float]]) -> list[str]:
    core: Any = _Core(costs)
    return [name for name, _ in removable([core], sorted({name for own in costs.values() for name in own}))[0]]


def test_kernels_that_stand_in_for_each_other_do_not_both_go() -> None:
    """`best` goes for `twin`, which then stays; a layer may lose more than a network; what is unused goes first."""
    assert _removed(COSTS) == ["slow", "best", "rare"]


def test_a_kernel_stays_where_the_arena_would_grow() -> None:
    assert _removed({"network": {"lean": 100.0, "wide": 100.1}}) == ["wide"]
