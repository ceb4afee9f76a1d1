"""Networks beside NE16: which transforms remain, and what is said of layers that it computes."""

from functools import cache

import pytest

from stages.backends.kernels import registry
from stages.ir.graph import Graph
from stages.ir.models.zoo import build
from stages.tensorize import TensorizeConfig
from stages.tensorize.choices import Chosen, choose_kernels
from stages.tensorize.equivalent_layers import with_cheapest_equivalents
from stages.tensorize.layouts import with_cheapest_layouts
from stages.tensorize.pass_context import PassContext
from stages.tensorize.placement import place_parts
from stages.tensorize.signedness import TYPES, flip, in_types, with_cheapest_signedness
from tests.support.emitted import target_named
from tests.support.integer import integer_graph


@cache
def network(name: str) -> Graph:
    return integer_graph(build(name))


@cache
def chosen(name: str, board: str, requantize: str) -> tuple[Chosen, PassContext]:
    target = target_named(board)
    config = TensorizeConfig.model_validate({"requantize": requantize})
    setting = PassContext.of(target, config, registry.kernels_of(target).values())
    laid_out = with_cheapest_layouts(with_cheapest_equivalents(network(name), setting), setting)
    return place_parts(choose_kernels(with_cheapest_signedness(laid_out, setting.cost), setting), setting), setting


FORMS = [("rv32-ne16", "core"), ("rv32-ne16", "engine"), ("rv32-ne16x", "engine")]


@pytest.mark.parametrize(("board", "requantize"), FORMS)
@pytest.mark.parametrize("name", ["ds_cnn", "resnet_8"])
def test_the_cores_price_of_every_engine_layer_is_reported(name: str, board: str, requantize: str) -> None:
    made, setting = chosen(name, board, requantize)
    offloaded = {index: choice for index, choice in made.choices.items() if choice.kernel is setting.offload}
    assert len(offloaded) >= 9
    for index, choice in offloaded.items():
        costs = [one.cost for one in choice.alternatives if not one.reason and one.cost is not None]
        assert costs and "cheapest of" in choice.why, (index, choice.why)
        assert choice.cost is not None and min(costs) > choice.cost


def test_flips_are_in_the_price() -> None:
    """The last layer reads uint8 and writes int8, which no kernel of the core does."""
    made, setting = chosen("resnet_8", "rv32-ne16", "engine")
    layer = next(layer for layer in made.graph.layers if layer.op.op == "fully_connected")
    view = made.graph.view(layer)
    assert [tensor.dtype for tensor in (*view.inputs, *view.outputs)] == ["uint8", "int8"]
    told = [one for one in made.choices[layer.index].alternatives if one.kernel == "rvp.dot_rows_s8"]
    assert [one.flips for one in told] == [1] and "with flips" in made.choices[layer.index].why
    expected = []
    for dtype in TYPES:
        form = in_types(view, [dtype], dtype)
        assert form is not None
        choice = setting.choose(form, None)
        same = [one for one in (choice.as_alternative, *choice.alternatives) if one.kernel == "rvp.dot_rows_s8"]
        (other,) = (tensor for tensor in (*view.inputs, *view.outputs) if tensor.dtype != dtype)
        copied, copy = flip(other, "copy")
        price = setting.cost(Graph({copy.name: copy, **made.graph.tensors}, [copied]).view(copied))
        assert price > 0
        expected.append(price + min(one.cost for one in same if one.cost is not None))
    assert told[0].cost == min(expected)
