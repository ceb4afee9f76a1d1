"""What a call costs, by its count or its kernel's estimate, and by what it is known."""

from dataclasses import replace
from typing import Any

import pytest

from stages.ir.graph import LayerView
from stages.tensorize.costs import Costs, Price, signature, variant
from tests.support.counting import layer_graph
from tests.support.emitted import target_named
from tests.support.kernels.mini import MiniGemm, MiniParams, PlainGemm, mini_graph

KERNEL, HOST = MiniGemm(), target_named("host")
OUT = {"scale": 0.05, "zero_point": 0}
ESTIMATE = 2 * 8 * 12 * 6


class Silent(MiniGemm):
    def cost(self, view: LayerView, params: Any, target: Any) -> float:
        raise LookupError


def view(**options: int) -> LayerView:
    graph = mini_graph(**options)
    return graph.view(graph.layers[0])


def test_a_count_goes_before_an_estimate_and_an_uncounted_call_costs_the_least_that_it_may() -> None:
    costs = Costs({signature(view()): {"mini.gemm rows=4": 77}}, lower_bounds=True)
    assert costs.price(KERNEL, view(), MiniParams(), HOST) == Price(77, "counted")
    other = MiniParams(rows=2)
    assert costs.price(KERNEL, view(), other, HOST) == Price(
        ESTIMATE / 2, "estimated"
    )  # off by twice, if nothing is said
    assert costs.estimate(KERNEL, ESTIMATE / 2, "estimated") == ESTIMATE
    assert costs.estimate(KERNEL, 77, "counted") == 77
    uncounted = replace(costs, uncounted=frozenset({(signature(view()), "mini.gemm rows=2")}))
    assert uncounted.price(KERNEL, view(), other, HOST) == Price(ESTIMATE, "estimated")
    assert Costs().price(KERNEL, view(), MiniParams(), HOST) == Price(ESTIMATE, "estimated")


def test_a_kernel_without_an_estimate_may_cost_nothing_until_it_is_counted() -> None:
    assert Costs(lower_bounds=True).price(Silent(), view(), MiniParams(), HOST) == Price(0.0, "estimated")
    assert Costs().price(Silent(), view(), MiniParams(), HOST) == Price()


def test_the_signature_is_about_shape_and_not_about_data() -> None:
    first, again = mini_graph(seed=0), mini_graph(seed=1)
    renamed = first.layers[0].model_copy(update={"name": "another"})
    assert signature(first.view(renamed)) == signature(again.view(again.layers[0]))
    assert signature(view()) != signature(view(depth=16))
    assert signature(view()) == "fully_connected int8[8x12] -> int8[8x6] rounding=single weights=int8"


@pytest.mark.parametrize(("activation", "clamp"), [("none", ""), ("relu", "low"), ("relu6", "low+high")])
def test_a_fused_activation_is_in_the_signature(activation: str, clamp: str) -> None:
    graph = layer_graph(op="conv2d", shape=(4, 4, 8), out_channels=8, activation=activation, output=OUT)
    found = [part for part in signature(graph.view(graph.layers[0])).split() if part.startswith("clamp=")]
    assert found == ([f"clamp={clamp}"] if clamp else [])


def test_a_variant_is_a_kernel_with_its_parameters() -> None:
    assert variant(KERNEL, MiniParams(rows=2)) == "mini.gemm rows=2"
    assert variant(KERNEL, MiniParams()) != variant(PlainGemm(), MiniParams())
