"""PAD in front of convolutions: where it can be their padding, and where it stays. All against LiteRT, bit for bit."""

from collections.abc import Callable

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder, Tensor
from stages.tensorize.equivalent_layers import with_all_equivalents
from tests.support.integer import LAYOUTS, Comparison, compare, integer_graph

Amounts = tuple[tuple[int, int], tuple[int, int]]
SHAPE = (1, 9, 8, 6)
KERNEL = (3, 3)


def conv(b: ModelBuilder, x: Tensor, kernel: tuple[int, int] = KERNEL, **more: object) -> Tensor:
    rng = np.random.default_rng(2)
    values = rng.integers(-127, 128, (5, *kernel, SHAPE[3])).astype(np.int8)
    bias = rng.integers(-900, 900, 5).astype(np.int32)
    return b.conv2d(x, values, bias, weight_scale=0.01, out=(0.1, -3), padding="valid", **more)  # type: ignore[arg-type]


def depthwise(b: ModelBuilder, x: Tensor, **more: object) -> Tensor:
    rng = np.random.default_rng(3)
    values = rng.integers(-127, 128, (1, *KERNEL, SHAPE[3])).astype(np.int8)
    bias = rng.integers(-900, 900, SHAPE[3]).astype(np.int32)
    return b.depthwise_conv2d(x, values, bias, weight_scale=0.01, out=(0.1, -3), padding="valid", **more)  # type: ignore[arg-type]


def padded(
    amounts: Amounts, read: Callable[[ModelBuilder, Tensor, Tensor], list[Tensor]], layout: str = "NHWC"
) -> tuple[Comparison, list[str]]:
    """Runs pad(x) and what reads it: the comparison, and the kinds of the graph's layers but for changes of layout."""
    b = ModelBuilder()
    x = b.input("x", SHAPE, "int8", 0.05, 11)
    start = b.relu(x)  # so that the padded image has the layout under test
    b.output(*read(b, b.pad(start, [(0, 0), *amounts, (0, 0)]), start))
    found = compare(b.build(), seed=4, layout=layout, change=with_all_equivalents)
    assert found.wrong == {}
    return found, [layer.kind for layer in found.graph.layers if layer.kind not in ("layout", "relu")]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("amounts", "stride", "padding"),
    [
        (((0, 1), (0, 1)), (2, 2), (0, 0, 0, 1)),  # four windows of three end with the ninth row
        (((1, 1), (1, 1)), (2, 2), (1, 1, 1, 0)),  # Keras before a convolution with stride 2
        (((1, 1), (2, 2)), (1, 1), (1, 2, 1, 2)),
        (((0, 2), (2, 0)), (1, 2), (0, 2, 2, 0)),
    ],
)
def test_it_becomes_their_padding(
    amounts: Amounts, stride: tuple[int, int], padding: tuple[int, ...], layout: str
) -> None:
    found, kinds = padded(amounts, lambda b, y, _: [conv(b, y, stride=stride), depthwise(b, y, stride=stride)], layout)
    if layout == "planar depthwise":  # the pad serves two layouts, and is made in one of them
        assert set(kinds) == {"conv2d", "depthwise_conv2d", "pad"}
        return
    assert kinds == ["conv2d", "depthwise_conv2d"]
    for layer in found.graph.layers:
        if layer.kind in kinds:
            assert layer.op.padding == padding  # type: ignore[union-attr]
    assert [layer.index for layer in found.graph.layers] == list(range(len(found.graph.layers)))


ONE = ((1, 1), (1, 1))
STAYS: dict[str, tuple[Amounts, Callable[[ModelBuilder, Tensor, Tensor], list[Tensor]]]] = {
    "read by another operator": (ONE, lambda b, y, _: [conv(b, y), b.relu(y)]),
    "an output of the model": (ONE, lambda b, y, _: [conv(b, y), y]),
    "a window would lie in the padding": (((3, 0), (0, 0)), lambda b, y, _: [conv(b, y)]),
    "a window would lie in the padding at the end": (((0, 0), (0, 4)), lambda b, y, _: [conv(b, y)]),
}


@pytest.mark.parametrize("case", STAYS)
def test_it_stays(case: str) -> None:
    amounts, read = STAYS[case]
    _, kinds = padded(amounts, read)
    assert "pad" in kinds


def test_channels_and_other_values_stay() -> None:
    b = ModelBuilder()
    x = b.input("x", SHAPE, "int8", 0.05, 11)
    cut = b.slice(x, (0, 0, 0, 1), (1, 9, 8, 5))
    b.output(conv(b, b.pad(cut, [(0, 0), (0, 0), (0, 0), (1, 0)])))
    found = compare(b.build(), seed=4, change=with_all_equivalents)
    assert found.wrong == {}
    assert [layer.kind for layer in found.graph.layers] == ["slice", "pad", "conv2d"]
    b = ModelBuilder()
    b.output(conv(b, b.pad(b.input("x", SHAPE, "int8", 0.05, 11), [(0, 0), (1, 1), (1, 1), (0, 0)])))
    graph = integer_graph(b.build())
    op = graph.layers[0].op
    for value, kinds in ((11, ["conv2d"]), (12, ["pad", "conv2d"])):  # PADV2 pads with any value
        params = {**op.params, "value": value}  # type: ignore[union-attr]
        graph.layers[0] = graph.layers[0].model_copy(update={"op": op.model_copy(update={"params": params})})
        assert [layer.kind for layer in with_all_equivalents(graph).layers] == kinds
