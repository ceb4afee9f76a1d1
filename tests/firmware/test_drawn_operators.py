"""Operators with drawn shapes, strides, paddings, dilations, zero points and scales through all stages.

The emitted C, on the host built with sanitizers, must give LiteRT's bytes in every layer. (Hypothesis begins with the
simplest model there is, so two examples are the least that say something.)
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.backends.targets.memory import Memory
from stages.backends.targets.spec import Target
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel
from stages.ir.reference import Reference
from stages.ir.reference.interpreter import random_inputs
from tests.support.drawn_models import OPERATORS, model
from tests.support.drawn_networks import network
from tests.support.emitted import run_emitted, target_named
from tests.support.stages_run import run_stages

PLANAR_DEPTHWISE = {"rules": [{"match": {"op": "depthwise_conv2d"}, "data": "NCHW"}]}
LAYOUTS = {"NHWC": {}, "planar depthwise": PLANAR_DEPTHWISE, "NCHW": {"default": "NCHW"}}


def compare(tflite: bytes, target: str | Target, layout: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Builds and runs the model; all tensors must be LiteRT's. Returns model.json, and the plan's layers."""
    chosen, reference = target_named(target) if isinstance(target, str) else target, Reference(tflite)
    inferences = [random_inputs(reference.info, seed) for seed in (1, 2)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.tflite").write_bytes(tflite)
        made = run_stages(
            FileModel(file=str(folder / "model.tflite")), chosen, folder / "made", configs={"layout": LAYOUTS[layout]}
        )
        described: dict[str, Any] = json.loads((made["emit"] / "model.json").read_text())
        planned = json.loads((made["tensorize"] / "plan.json").read_text())["layers"]
        found = run_emitted(made["emit"], chosen, inferences)
    for inputs, inference in zip(inferences, found, strict=True):
        for number, (expected, output) in enumerate(zip(reference.run(inputs), inference.outputs, strict=True)):
            np.testing.assert_array_equal(output, expected, f"output {number}")
        for trace in described["traces"]:
            expected = reference.tensor(trace["tflite_index"])
            np.testing.assert_array_equal(inference.traces[trace["tensor"]], expected, str(trace))
    return described, planned


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("layout", LAYOUTS)
@given(st.data())
@settings(max_examples=5)
def test_windows_on_the_host(layout: str, dtype: str, data: st.DataObject) -> None:
    names = ("conv2d", "conv2d", "depthwise_conv2d", "depthwise_conv2d", "pool2d", "pool2d")
    compare(model(data.draw, dtype, names), "host", layout)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@given(st.data())
@settings(max_examples=5)
def test_other_operators_on_the_host(dtype: str, data: st.DataObject) -> None:
    others = tuple(name for name in OPERATORS if name not in ("conv2d", "depthwise_conv2d", "pool2d"))
    compare(model(data.draw, dtype, others), "host", data.draw(st.sampled_from(list(LAYOUTS))))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("target", ["rv64-scalar", "rv32-scalar", "rv64-rvp", "rv32-rvp"])
@given(st.data())
@settings(max_examples=2)
def test_a_sample_on_the_simulator(target: str, dtype: str, data: st.DataObject) -> None:
    compare(model(data.draw, dtype, tuple(OPERATORS)), target, data.draw(st.sampled_from(list(LAYOUTS))))


@pytest.mark.parametrize(
    ("target", "seeds"), [("host", range(24)), ("rv64-rvp", range(24, 36)), ("cortex-m55", range(36, 44))]
)
def test_networks_that_share_memory(target: str, seeds: range, every: int) -> None:
    """Tensors that are parts of others, overlaid, read again later, or outputs of the model, in two inferences."""
    for seed in seeds[::every]:
        compare(network(seed), target, sorted(LAYOUTS)[seed % len(LAYOUTS)])


def over_four_memories(fast: int) -> Target:
    """The host with `fast` bytes each of fast memory for the arena and for weights, and enough of slow."""
    regions = {
        "itcm": {"origin": 1 << 20, "length": fast, "holds": ["weights"]},
        "flash": {"origin": 2 << 20, "length": 1 << 20, "speed": 1, "holds": ["code", "constants", "weights"]},
        "dtcm": {"origin": 3 << 20, "length": fast, "holds": ["arena"]},
        "sram": {"origin": 4 << 20, "length": 1 << 20, "speed": 1, "holds": ["data", "stack", "arena"]},
    }
    return target_named("host").model_copy(update={"memory": Memory.model_validate(regions)})


def test_networks_over_several_memories(every: int) -> None:
    """The sanitizers tell of an access that leaves its arena, LiteRT of one that meets another buffer."""
    divided, seeds = 0, range(44, 56)[:: min(every, 4)]
    for seed in seeds:
        fast = 128 * (1 + seed % 5)
        described, _ = compare(network(seed), over_four_memories(fast), sorted(LAYOUTS)[seed % len(LAYOUTS)])
        sizes = {block["region"]: block["bytes"] for block in described["blocks"]}
        assert all(size <= fast for region, size in sizes.items() if region in ("itcm", "dtcm"))
        divided += {"dtcm", "sram"} <= set(sizes)
    assert divided >= len(seeds) // 2


def test_an_element_wise_layer_takes_the_memory_of_its_input() -> None:
    b = ModelBuilder()
    weights = np.ones((64, 16), np.int8)
    y = b.fully_connected(b.input("x", (1, 16), "int8", 0.05, 3), weights, weight_scale=0.01, out=(0.1, -3))
    b.output(b.logistic(y))
    described, plan = compare(b.build(), "host", "NHWC")
    assert len(plan) == 2 and described["arena_bytes"] == 16 + 64
