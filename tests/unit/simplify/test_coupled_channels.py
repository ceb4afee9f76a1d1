"""Channels that are constant or of no weight: which can go, and that nothing else changes. All against LiteRT."""

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder
from stages.lower.simplify.value_ranges import value_ranges
from tests.support.constant_channels import QUANT, Drawn, narrowest
from tests.support.integer import LAYOUTS, compare, integer_graph


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_left_is_litert_s(layout: str, dtype: str) -> None:
    fewer = 0
    for seed in range(12):
        found = compare(Drawn(seed, dtype).build(), seed=seed, layout=layout, change=narrowest)
        assert found.wrong == {}, seed
        ports = (*found.graph.inputs, *found.graph.outputs)
        assert all(found.graph.tensors[name].channels is None for name in ports), seed
        fewer += sum(tensor.channels is not None for tensor in found.graph.tensors.values())
    assert fewer > 40


def chain(values: np.ndarray, bias: list[int], *, padding: str = "valid", weight_scale: float = 0.01) -> bytes:
    """x -> conv2d of these (O, kh, kw, 4) -> slice of its rows -> max_pool2d -> conv2d with weights of one -> y."""
    b = ModelBuilder()
    x = b.input("x", (1, 6, 6, 4), "int8", *QUANT)
    y = b.conv2d(x, values, np.array(bias, np.int32), weight_scale=weight_scale, out=QUANT, name="first")
    y = b.slice(y, (0, 1, 0, 0), (1, 4, 6, len(values)))
    y = b.max_pool2d(y, (2, 2), (1, 1))
    ones = np.ones((3, 3, 3, len(values)), np.int8)
    b.output(b.conv2d(y, ones, np.zeros(3, np.int32), weight_scale=0.01, padding=padding, out=QUANT, name="y"))
    return b.build()


def filters(*alive: bool) -> np.ndarray:
    """(O, 1, 1, 4), all zero where not alive."""
    rng = np.random.default_rng(5)
    return np.array([rng.integers(1, 128, (1, 1, 4)) * one for one in alive], np.int8)


@pytest.mark.parametrize(
    ("bias", "padding", "left"),
    [
        ([0, 0, 0, 0], "same", (1, 3)),  # both are the zero point, as the padding is
        ([0, 50, 900, 0], "valid", (1, 3)),
        ([0, 50, 900, 0], "same", (1, 2, 3)),  # the third is not the zero point, which windows meet at the border
    ],
)
def test_which_channels_go(bias: list[int], padding: str, left: tuple[int, ...]) -> None:
    found = compare(chain(filters(False, True, False, True), bias, padding=padding), change=narrowest)
    assert found.wrong == {}
    channels = [tensor.channels for tensor in found.graph.tensors.values() if tensor.channels is not None]
    assert channels == [left] * 3  # of the convolution, of the slice, of the pool


def test_sums_that_leave_int32_on_the_way_are_not_believed() -> None:
    """A multiplier of 2^12 shifts sums to the left, where int32 wraps: no channel is what its bounds would be."""
    graph = integer_graph(chain(filters(True, True), [1 << 18, -(1 << 18)], weight_scale=4096.0))
    own = value_ranges(graph)["first"]
    assert (own.least == -128).all() and (own.most == 127).all()
