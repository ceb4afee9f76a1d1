"""Networks with an engine's own arithmetic: the integer graph is the reference, and LiteRT what it is compared with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder
from stages.ir.reference.interpreter import Reference, random_inputs
from stages.tensorize.signedness import with_cheapest_signedness
from stages.verify.graph_reference import GraphReference, check_bounds
from tests.support.integer import integer_graph


def network() -> bytes:
    """Two convolutions, a sum and a table."""
    rng, b = np.random.default_rng(3), ModelBuilder()
    x = b.input("x", (1, 5, 5, 4), "int8", 0.05, 3)
    weights = rng.integers(-127, 128, (4, 3, 3, 4)).astype(np.int8)
    y = b.conv2d(x, weights, rng.integers(-900, 900, 4).astype(np.int32), weight_scale=0.01, out=(0.1, -5))
    b.output(b.logistic(b.add(x, y, out=(0.12, 7))))
    return b.build()


def test_the_graph_is_a_reference_in_the_files_integers(tmp_path: Path) -> None:
    """Here its arithmetic is LiteRT's, though some tensors are kept as uint8."""

    def price(view: Any) -> float:
        return float("inf") if view.op.op == "conv2d" and view.inputs[0].dtype == "int8" else 1.0

    graph = with_cheapest_signedness(integer_graph(network()), price)
    assert any(tensor.added for tensor in graph.tensors.values())
    graph.save(tmp_path)
    ours, litert = GraphReference(tmp_path), Reference(network())
    for seed in range(3):
        inputs = random_inputs(litert.info, seed)
        for one, other in zip(ours.run(inputs), litert.run(inputs), strict=True):
            np.testing.assert_array_equal(one, other)
        for tensor in graph.tensors.values():
            if tensor.tflite_index is not None and not tensor.constant:
                np.testing.assert_array_equal(ours.tensor(tensor.tflite_index), litert.tensor(tensor.tflite_index))


def test_float_layers_have_no_reference(tmp_path: Path) -> None:
    b = ModelBuilder()
    b.output(b.relu(b.input("x", (1, 4), "float32")))
    graph: Graph = integer_graph(b.build())
    graph.save(tmp_path)
    with pytest.raises(StageError, match="layer 'relu' is float32") as caught:
        GraphReference(tmp_path)
    assert "stages.tensorize.requantize: core" in caught.value.hint


@pytest.mark.parametrize(
    ("largest", "share", "told"),
    [
        (None, None, ""),
        (2, 0.25, ""),
        (
            1,
            None,
            "25 of 100 output values differ from LiteRT's, by at most 2; the recipe's verify.max_difference is 1",
        ),
        (None, 0.2, "25 of 100 output values differ from LiteRT's, by at most 2; the recipe's verify.max_share is 0.2"),
    ],
)
def test_bounds_of_the_recipe_fail_the_run(largest: float | None, share: float | None, told: str) -> None:
    found = {"outputs": {"values": 100, "differing": 25, "share": 0.25, "largest": 2.0}}
    if not told:
        check_bounds(found, largest, share)
        return
    with pytest.raises(StageError, match=told) as caught:
        check_bounds(found, largest, share)
    assert caught.value.at == ("stages", "verify", "max_difference" if largest is not None else "max_share")
