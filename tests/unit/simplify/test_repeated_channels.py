"""Channels that repeat others: which go, with their weights in another's, and that nothing else changes. By LiteRT."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder
from stages.lower.simplify.coupled_channels import coupled_channels
from stages.lower.simplify.narrow import Narrowing
from stages.lower.simplify.value_ranges import value_ranges
from tests.support.constant_channels import QUANT, Drawn, narrowest
from tests.support.integer import LAYOUTS, compare


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(["int8", "uint8"]), st.sampled_from(sorted(LAYOUTS)), st.data())
def test_what_is_left_is_litert_s(seed: int, dtype: str, layout: str, data: st.DataObject) -> None:
    """However many of the channels that can go do go, the last of them first."""

    def fewer(graph: Graph) -> Graph:
        found, staying = coupled_channels(graph, value_ranges(graph)), []
        for family in found:
            spare = np.flatnonzero(family.removable)
            own = ~family.removable
            own[spare[: data.draw(st.integers(0, len(spare)))]] = True
            staying.append(family.filled(own))
        return Narrowing(graph, found, staying).graph_without()

    model = Drawn(seed, dtype, repeated=True).build()
    for change in (fewer, narrowest):
        assert compare(model, seed=seed, layout=layout, change=change).wrong == {}


def chain(first: list[int], second: list[int], *, padding: str = "same", bias: tuple[int, ...] = (5, 5, 5)) -> bytes:
    """x -> conv2d of three filters, each of one number -> tanh -> conv2d of two, of numbers by channel -> y."""
    b = ModelBuilder()
    x = b.input("x", (1, 6, 6, 4), "int8", *QUANT)
    values = np.array(first, np.int8).repeat(4).reshape(3, 1, 1, 4)
    y = b.conv2d(x, values, np.array(bias, np.int32), weight_scale=0.01, out=QUANT, name="first")
    y = b.tanh(y, name="tanh")
    rows = np.broadcast_to(np.array(second, np.int8), (2, 3, 3, 3)).copy()
    b.output(b.conv2d(y, rows, np.zeros(2, np.int32), weight_scale=0.01, padding=padding, out=QUANT, name="y"))
    return b.build()


@pytest.mark.parametrize(
    ("first", "second", "bias", "left", "weights"),
    [
        ([9, 9, 7], [20, 30, 40], (5, 5, 5), (1, 2), [50, 40]),
        ([9, 9, 9], [20, 30, 40], (5, 5, 5), (2,), [90]),
        ([9, 9, 9], [120, -100, 40], (5, 5, 5), (2,), [60]),  # 40 - 100 + 120: each sum is in range
        ([9, 9, 9], [100, 80, 40], (5, 5, 5), (0, 2), [100, 120]),  # not all three
        ([9, 9, 7], [-64, -63, 1], (5, 5, 5), (1, 2), [-127, 1]),
        ([9, 9, 7], [-64, -64, 1], (5, 5, 5), None, [-64, -64, 1]),
        ([9, 9, 7], [64, 63, 1], (5, 5, 5), (1, 2), [127, 1]),
        ([9, 9, 7], [64, 64, 1], (5, 5, 5), None, [64, 64, 1]),
        ([9, 9, 7], [20, 30, 40], (5, 6, 5), None, [20, 30, 40]),  # not the same bias
    ],
)
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_which_go(
    padding: str,
    first: list[int],
    second: list[int],
    bias: tuple[int, ...],
    left: tuple[int, ...] | None,
    weights: list[int],
) -> None:
    found = compare(chain(first, second, padding=padding, bias=bias), change=narrowest)
    assert found.wrong == {}
    assert [found.graph.tensors[name].channels for name in ("first", "tanh")] == [left, left]
    last = found.graph.view(found.graph.layers[-1])
    assert last.constant("weights").reshape(-1, last.op.in_channels)[0].tolist() == weights
