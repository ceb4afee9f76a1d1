"""Layers that are exact and far slower than usual are told, with what helps; all others are not."""

import re
from dataclasses import replace
from typing import Any

import pytest

from stages.backends.kernels import registry
from stages.ir.graph import Graph
from stages.ir.models.resolve import resolve
from stages.ir.models.spec import OpModel
from stages.tensorize import TensorizeConfig
from stages.tensorize.choices import choose_kernels
from stages.tensorize.costs import Costs
from stages.tensorize.pass_context import PassContext
from tests.support.emitted import target_named
from tests.support.integer import integer_graph

DENSE = {"op": "fully_connected", "shape": [640], "out_channels": 128}
CONV = {"op": "conv2d", "shape": [8, 8, 16], "out_channels": 16, "kernel": [3, 3]}
LSTM = {"op": "lstm", "shape": [4, 64], "out_channels": 64}
MATMUL = {"op": "batch_matmul", "shape": [16, 32], "other_shape": [32, 16]}
DEPTHWISE = {"op": "depthwise_conv2d", "shape": [16, 16, 32], "kernel": [3, 3]}


def changed(model: dict[str, Any], weights: str = "", **fields: Any) -> Graph:
    """One layer with other fields than a TFLite file of usual parameters gives it."""
    graph = integer_graph(resolve(OpModel.model_validate(model)))
    (layer,) = graph.layers
    arrays = dict(graph.constants)
    if weights:
        arrays[layer.constants["weights"]] = arrays[layer.constants["weights"]].astype(weights)
    return replace(
        graph, layers=[layer.model_copy(update={"op": layer.op.model_copy(update=fields)})], constants=arrays
    )


def told(graph: Graph, target: str, **options: Any) -> list[str]:
    place = target_named(target)
    setting = PassContext.of(place, TensorizeConfig(**options), registry.kernels_of(place).values(), Costs())
    return [line for line in choose_kernels(graph, setting).warnings if line.startswith("slow: ")]


U8 = {"weight_zero_point": 131, "rounding": "single"}


@pytest.mark.parametrize(
    ("target", "model", "weights", "fields", "helps"),
    [
        ("rv64-rvp", DENSE, "", {"rounding": "steps"}, "per_channel: false"),
        ("rv64-rvp", DEPTHWISE, "", {"rounding": "single"}, "quantize: {rounding: twice}"),
        ("rv64-rvp", {**CONV, "groups": 16}, "uint8", U8, "symmetric int8"),
        ("rv64-rvp", {**CONV, "dtype": "int16"}, "", {}, "keep_int16"),
        ("cortex-m4", {**LSTM, "dtype": "int16"}, "", {}, "keep_int16"),
        ("cortex-m55", {**MATMUL, "dtype": "int16"}, "", {}, "keep_int16"),
    ],
    ids=["steps", "rounded once", "depthwise of uint8", "int16", "lstm", "matmul"],
)
def test_what_makes_a_layer_slow_is_named_with_what_helps(
    target: str, model: dict[str, Any], weights: str, fields: dict[str, Any], helps: str
) -> None:
    graph = changed(model, weights, **fields)
    (line,) = told(graph, target)
    assert helps in line and graph.layers[0].name in line
    cost, usual = (int(found.replace(",", "")) for found in re.findall(r"([0-9,]+) instead of some ([0-9,]+)", line)[0])
    assert cost >= 2 * usual > 0


@pytest.mark.parametrize("target", ["rv64-rvp", "cortex-m4", "cortex-m55", "host"])
@pytest.mark.parametrize(
    "model", [DENSE, CONV, {**CONV, "dtype": "uint8"}, LSTM, MATMUL], ids=["dense", "conv", "uint8", "lstm", "matmul"]
)
def test_usual_layers_are_not(target: str, model: dict[str, Any]) -> None:
    assert told(integer_graph(resolve(OpModel.model_validate(model))), target) == []
