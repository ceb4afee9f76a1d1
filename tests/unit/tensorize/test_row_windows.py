"""Images of one column, computed as images of one row: the same numbers as LiteRT's, in every layout and chain."""

import numpy as np
import pytest

from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.tensorize.equivalent_layers import cheapest_equivalents, with_all_equivalents
from tests.support.integer import LAYOUTS, compare, integer_graph

QUANT = (0.05, 3)


def conv(b: ModelBuilder, x: Tensor, name: str, **more: object) -> Tensor:
    values = np.random.default_rng(2).integers(-127, 128, (8, 3, 1, x.shape[3])).astype(np.int8)
    bias = np.arange(-400, 400, 100, dtype=np.int32)
    return b.conv2d(x, values, bias, weight_scale=0.01, out=QUANT, name=name, **more)  # type: ignore[arg-type]


def depthwise(b: ModelBuilder, x: Tensor, name: str, **more: object) -> Tensor:
    values = np.random.default_rng(3).integers(-127, 128, (1, 5, 1, x.shape[3])).astype(np.int8)
    bias = np.arange(x.shape[3], dtype=np.int32) * 50
    return b.depthwise_conv2d(x, values, bias, weight_scale=0.01, out=QUANT, name=name, **more)  # type: ignore[arg-type]


def temporal(channels: int = 4) -> bytes:
    """Convolutions over 12 steps with strides and dilations, SAME and VALID, a sum around one, pools, classes."""
    b = ModelBuilder()
    x = b.input("x", (1, 12, 1, channels), "int8", *QUANT)
    y = conv(b, x, "a", padding="same")
    z = depthwise(b, y, "b", padding="same", dilation=(2, 1))
    y = b.add(y, z, out=QUANT, name="c")
    y = conv(b, y, "d", padding="valid", stride=(2, 1), activation="relu")
    y = b.max_pool2d(y, (2, 1), (1, 1), padding="same", name="e")
    y = b.avg_pool2d(y, (3, 1), (2, 1), padding="valid", name="f")
    w = b.max_pool2d(x, (3, 1), (1, 1), padding="same", name="w")  # x is read twice
    b.output(b.reshape(y, (1, y.shape[1] * 8), name="g"), z, w)
    return b.build()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 4])
def test_the_numbers_stay(layout: str, channels: int) -> None:
    found = compare(temporal(channels), seed=1, layout=layout, change=with_all_equivalents)
    assert found.wrong == {}
    layers = found.graph.layers
    names = [layer.name for layer in layers]
    assert len(names) == len(set(names))
    if layout == "NHWC":
        assert {found.graph.tensors[layer.outputs[0]].shape[1] for layer in layers if hasattr(layer.op, "kernel")} == {
            1
        }
        # From the convolution to the reshape behind the pools none sees a column.
        assert [name for name in names[names.index("d") :] if name[0] != "w"] == ["d", "e", "f", "f/column", "g"]


def test_only_what_saves_enough_is_turned() -> None:
    def price(factor: float):  # type: ignore[no-untyped-def]
        return lambda graph, layer: 100 * (factor if graph.tensors[layer.outputs[0]].shape[1] == 1 else 1)

    graph = integer_graph(temporal())
    for factor, turned in ((0.98, False), (0.96, True)):
        made: Graph = cheapest_equivalents(graph, price(factor), lambda _graph, _layer: False)
        assert any(name.endswith("/row") for name in made.tensors) == turned


def test_windows_of_two_columns_and_borders_beside_the_column_stay() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 6, 1, 4), "int8", *QUANT)
    values = np.ones((8, 3, 3, 4), np.int8)  # SAME: a column of padding on either side
    b.output(b.conv2d(x, values, np.zeros(8, np.int32), weight_scale=0.01, out=QUANT, name="y"))
    graph = integer_graph(b.build())
    assert with_all_equivalents(graph) is graph
