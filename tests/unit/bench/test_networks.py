"""Counting small networks in one firmware, as if each had its own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.api import run_recipe
from stages.base import StageError
from stages.count.call import Memory
from stages.count.counter import Counter
from stages.delivery.bench import networks as bench_networks
from stages.delivery.bench.networks import Counted, Network, count
from stages.ir.models.spec import OpModel
from stages.layout.rules import LayoutConfig
from stages.tensorize import TensorizeConfig
from tests.support.emitted import target_named

ROOT = Path(__file__).resolve().parents[3]
RV32 = target_named("rv32-rvp")
COUNTER = Counter(RV32, None, {})
MODELS: dict[str, dict[str, Any]] = {
    "gate": {"op": "mul", "shape": [6, 6, 24], "other_shape": [1, 1, 24]},
    "depthwise": {"op": "depthwise_conv2d", "shape": [5, 5, 8], "kernel": [3, 3]},
    "split": {"op": "split", "shape": [5, 5, 12], "parts": 2},
    "softmax": {"op": "softmax", "shape": [10]},
    "memory": {"op": "lstm", "shape": [2, 4], "out_channels": 8},
    "floats": {"op": "quantize", "shape": [4, 4, 3], "dtype": "float32", "to": "int8"},
}


def network(name: str, tensorize: TensorizeConfig | None = None) -> Network:
    return Network.of(name, OpModel.model_validate(MODELS[name]), LayoutConfig(), tensorize or TensorizeConfig())


@pytest.fixture(scope="module")
def counted() -> dict[str, Counted]:
    return {one.network.name: one for one in count([network(name) for name in MODELS], RV32, COUNTER)}


def test_each_is_counted(counted: dict[str, Counted]) -> None:
    assert [*counted] == [*MODELS]
    assert len(counted["split"].kernels) == 2
    assert (counted["depthwise"].network.macs, counted["gate"].network.macs) == (5 * 5 * 8 * 9, 0)
    assert counted["gate"].network.elements == 6 * 6 * 24


@pytest.mark.parametrize("name", ["gate"])
def test_figures_are_those_of_a_recipe_of_its_own(name: str, counted: dict[str, Counted], tmp_path: Path) -> None:
    stages = {"tensorize": {"optimize_for": "speed"}}
    recipe = {"schema": 1, "name": name, "target": "rv32-rvp", "model": MODELS[name], "stages": stages}
    report = run_recipe(recipe, root=ROOT, build=tmp_path).report
    assert report is not None
    alone = report["instructions"]["total"]
    assert alone == pytest.approx(counted[name].instructions, abs=60)  # its model_run copies inputs and outputs


def test_wrong_outputs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = network("gate")
    wrong.__dict__["expected"] = [np.bitwise_xor(array, 1) for array in wrong.expected]
    with pytest.raises(StageError, match="gate: 864 of 864 output values differ from LiteRT's"):
        list(count([network("softmax"), wrong], RV32, COUNTER))


def test_what_the_memory_does_not_hold_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_networks, "memory_of", lambda target: Memory(1000, 10_000))
    small = replace(network("softmax"), name="small")
    assert [one.network.name for one in count([network("gate"), small], RV32, COUNTER)] == ["small"]
