"""Which calls are counted: enough for the best choice, no more, and the same whatever is known beyond them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from stages.count.search import counted_costs
from stages.ir.graph import Graph, LayerView
from stages.tensorize import TensorizeConfig
from stages.tensorize.build import decide
from stages.tensorize.costs import Call, KernelCall
from stages.tensorize.pass_context import PassContext
from tests.support.emitted import target_named
from tests.support.kernels.mini import MiniGemm, MiniParams, mini_graph

HOST = target_named("host")


class Sized(MiniGemm):
    """The mini kernel with three sizes, each with an estimate of its own."""

    name = "mini.sized"
    estimates: Mapping[int, float] = {2: 100.0, 4: 150.0, 8: 300.0}

    def candidates(self, view: LayerView, target: object) -> tuple[MiniParams, ...]:
        return tuple(MiniParams(rows=rows) for rows in self.estimates)

    def cost(self, view: LayerView, params: MiniParams, target: object) -> float:
        return self.estimates[params.rows]


class Counts:
    """Counts as a test says them, and which were asked for."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self.counts = counts
        self.asked: list[list[int]] = []

    def __call__(self, calls: Sequence[KernelCall]) -> Mapping[Call, int]:
        sizes = [call.params.rows for call in calls]  # type: ignore[attr-defined]
        self.asked.append(sizes)
        return {call.key: self.counts[size] for call, size in zip(calls, sizes, strict=True) if size in self.counts}


def setting() -> PassContext:
    return PassContext.of(HOST, TensorizeConfig(simplify=False), [Sized()])


def layer(seed: int = 0) -> Graph:
    """The first layer of the mini network."""
    graph = mini_graph(8, seed=seed)
    graph.layers[1:] = []
    graph.outputs[:] = graph.layers[0].outputs
    return graph


def chosen(graph: Graph, counts: Counts) -> tuple[int, str]:
    """Rows of the chosen kernel, and where its cost comes from."""
    costs = counted_costs([(graph, setting())], counts)
    (choice,) = decide(graph, replace(setting(), costs=costs))[0].choices.values()
    return choice.params.rows, choice.cost_source


def test_a_call_that_its_estimate_puts_second_is_counted_and_chosen_where_it_is_best() -> None:
    """300 may be off by twice, so it is 150 or more: not counted while another takes 120."""
    counts = Counts({2: 120, 4: 90, 8: 10})
    assert chosen(layer(), counts) == (4, "counted")
    assert counts.asked == [[2, 4]]


def test_what_may_still_be_better_than_every_count_is_counted_next() -> None:
    counts = Counts({2: 190, 4: 180, 8: 160})
    assert chosen(layer(), counts) == (8, "counted")
    assert counts.asked == [[2, 4], [8]]


def test_of_calls_within_a_percent_the_first_is_taken() -> None:
    assert chosen(layer(), Counts({2: 1009, 4: 1000, 8: 2000})) == (2, "counted")
    assert chosen(layer(), Counts({2: 1011, 4: 1000, 8: 2000})) == (4, "counted")


def test_a_call_that_cannot_be_counted_costs_what_it_is_estimated_to() -> None:
    assert chosen(layer(), Counts({4: 140})) == (2, "estimated")
    assert chosen(layer(), Counts({4: 90})) == (4, "counted")


def test_a_second_network_of_the_same_layers_asks_for_nothing_more() -> None:
    counts = Counts({2: 120, 4: 90, 8: 10})
    networks = [(layer(seed), setting()) for seed in (0, 1)]
    costs = counted_costs(networks, counts)
    assert counts.asked == [[2, 4]]
    assert counted_costs(networks[::-1], Counts(counts.counts)) == costs


@pytest.mark.parametrize("beyond", [{}, {8: 10}])
def test_counts_beyond_those_that_are_asked_for_change_nothing(beyond: Mapping[int, int]) -> None:
    assert chosen(layer(), Counts({2: 120, 4: 90, **beyond})) == (4, "counted")
