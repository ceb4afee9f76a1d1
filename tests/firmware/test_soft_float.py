"""Float networks on cores without a floating-point unit: said beforehand what they take, and not taken for a hang."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import run_recipe
from stages.simulate import simulate

MODELS: tuple[dict[str, Any], ...] = (
    {"op": "conv2d", "shape": [8, 8, 8], "out_channels": 8, "kernel": [3, 3], "activation": "relu"},
    {"op": "softmax", "shape": [100]},
    {"op": "max_pool2d", "shape": [12, 12, 4], "kernel": [9, 9], "stride": [1, 1]},
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["op"])
@pytest.mark.parametrize("target", ["rv32-scalar", "cortex-m33"])
def test_soft_float_is_foreseen_and_no_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, model: dict[str, Any]
) -> None:
    monkeypatch.setattr(simulate, "_INSTRUCTIONS_AT_LEAST", 0)  # as for a network that takes many times more than that
    inputs = {"random": 1, "seed": 1, "extremes": False}
    recipe = {
        "schema": 1,
        "name": "soft",
        "target": target,
        "model": {**model, "dtype": "float32"},
        "stages": {"simulate": {"inputs": inputs}},
    }
    report = run_recipe(recipe, store=tmp_path / "store", build=tmp_path / "build").report
    assert report is not None
    assert report["verify"]["mismatches"] == 0
    (plan,) = [json.loads(path.read_text()) for path in (tmp_path / "store").rglob("plan.json")]
    expected, taken = plan["layers"][0]["cost"], report["layers"][0]["instructions"]
    assert plan["layers"][0]["cost_source"] == "estimated"
    assert expected / 5 < taken < 5 * expected
    (warning,) = report["warnings"]
    assert warning.startswith(f"{target} has no floating-point unit: 1 float layer will take some ")
    told = int(warning.split("some ")[1].split()[0].replace(",", ""))
    assert told == pytest.approx(expected, rel=0.05)
