"""Channels that repeat others: which go, with their weights in another's, and that nothing else changes. By LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.graph import Graph
from stages.models.builder import ModelBuilder
from stages.reference.integer import run_graph
from stages.simplify.bundles import families
from stages.simplify.narrow import Narrowing
from stages.simplify.reach import reaches
from stages.simplify.repeats import alike
from tests.support.constant_channels import QUANT, Drawn, narrowest
from tests.support.integer import LAYOUTS, compare, integer_graph


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(["int8", "uint8"]), st.sampled_from(sorted(LAYOUTS)), st.data())
def test_what_is_left_is_litert_s(seed: int, dtype: str, layout: str, data: st.DataObject) -> None:
    """However many of the channels that can go do go, the last of them first."""

    def fewer(graph: Graph) -> Graph:
        found, staying = families(graph, reaches(graph)), []
        for family in found:
            spare = np.flatnonzero(family.removable)
            own = ~family.removable
            own[spare[: data.draw(st.integers(0, len(spare)))]] = True
            staying.append(family.filled(own))
        return Narrowing(graph, found, staying).graph_without()

    model = Drawn(seed, dtype, repeated=True).build()
    for change in (fewer, narrowest):
        assert compare(model, seed=seed, layout=layout, change=change).wrong == {}


def test_channels_with_one_label_are_equal_and_most_repeat_something() -> None:
    repeated = 0
    for seed in range(12):
        graph = integer_graph(Drawn(seed, repeated=True).build())
        shape = graph.tensors["x"].shape
        values = run_graph(graph, [np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)])
        for name, labels in alike(graph).items():
            rows = values[name].reshape(-1, values[name].shape[-1]).T
            first = [labels.tolist().index(label) for label in labels]
            assert np.array_equal(rows, rows[first]), (seed, name)
            repeated += int((np.arange(len(labels)) != first).sum())
    assert repeated > 300


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


def test_pixels_of_a_flat_image_are_told_apart() -> None:
    """Behind a reshape the channels of one pixel repeat each other; those of two pixels do not."""
    b = ModelBuilder()
    x = b.input("x", (1, 2, 2, 3), "int8", *QUANT)
    values = np.array([[1, 2, 3], [1, 2, 3], [4, 5, 6]], np.int8).reshape(3, 1, 1, 3)
    y = b.conv2d(x, values, np.zeros(3, np.int32), weight_scale=0.02, out=QUANT, name="c")
    flat = b.reshape(y, (1, 12), name="flat")
    rows = np.arange(24).reshape(2, 12).astype(np.int8)
    b.output(b.fully_connected(flat, rows, np.zeros(2, np.int32), weight_scale=0.01, out=QUANT, name="y"))
    data = b.build()
    labels = alike(integer_graph(data))
    assert labels["c"].tolist() == [0, 0, 1]
    assert labels["flat"].tolist() == [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7]
    found = compare(data, change=narrowest)
    assert found.wrong == {}
    assert found.graph.tensors["flat"].channels == (1, 2, 4, 5, 7, 8, 10, 11)


def test_joined_tensors_are_told_apart() -> None:
    b = ModelBuilder()
    x, y = (b.input(name, (1, 2, 2, 2), "int8", *QUANT) for name in "xy")
    b.output(b.concatenation([x, y, x], 3, name="c"))
    assert alike(integer_graph(b.build()))["c"].tolist() == [0, 1, 2, 3, 0, 1]
