"""Layers on NE16, requantized by the core or by the extended engine: equal to LiteRT, from file to simulator."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.graph import Graph
from stages.models.builder import ModelBuilder
from stages.models.spec import FileModel, OpModel
from tests.support.emitted import target_named
from tests.support.stages_run import run_stages

LAYERS: dict[str, dict[str, Any]] = {
    "3x3": {"op": "conv2d", "shape": [9, 11, 20], "out_channels": 36, "kernel": [3, 3]},
    "3x3 in steps of two": {"op": "conv2d", "shape": [9, 12, 5], "out_channels": 6, "kernel": [3, 3], "stride": [2, 2]},
    "depthwise": {"op": "depthwise_conv2d", "shape": [8, 7, 18], "kernel": [3, 3], "stride": [2, 2]},
    "1x1 in steps of two": {"op": "conv2d", "shape": [7, 6, 33], "out_channels": 9, "kernel": [1, 1], "stride": [2, 2]},
    "10x4": {"op": "conv2d", "shape": [23, 10, 2], "out_channels": 24, "kernel": [10, 4], "stride": [2, 2]},
    "units": {"op": "fully_connected", "shape": [70], "out_channels": 41},
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("target", ["rv32-ne16", "rv32-ne16x"])
def test_a_layer_is_exact(tmp_path: Path, name: str, target: str) -> None:
    if shutil.which("riscv64-unknown-elf-gcc") is None:
        pytest.skip("riscv64-unknown-elf-gcc is not installed")
    configs = {
        "tensorize": {"rules": [{"match": {"op": LAYERS[name]["op"]}, "kernel": "ne16"}]},
        "simulate": {"inputs": {"random": 2, "seed": 3, "extremes": True}},
    }
    model = OpModel.model_validate(LAYERS[name])
    artifacts = run_stages(model, target_named(target), tmp_path, until="verify", configs=configs)
    verified = json.loads((artifacts["verify"] / "verify.json").read_text())
    assert verified["mismatches"] == 0 and verified["outputs_checked"] > 0, verified["first_mismatch"]
    plan = json.loads((artifacts["tensorize"] / "plan.json").read_text())
    assert [layer["kernel"] for layer in plan["layers"] if layer["program"]] == ["ne16"]


@pytest.mark.parametrize("pixels", [1, 6])
def test_channels_of_very_different_scales_are_exact(tmp_path: Path, pixels: int) -> None:
    """Each has a multiplier and a shift of its own; a single pixel is requantized in another way than several."""
    if shutil.which("riscv64-unknown-elf-gcc") is None:
        pytest.skip("riscv64-unknown-elf-gcc is not installed")
    random, builder = np.random.default_rng(5), ModelBuilder()
    x = builder.input("x", (1, 1, pixels, 24), "int8", 0.05, -3)
    weights = random.integers(-127, 128, (20, 1, 1, 24), dtype=np.int8)
    scales = tuple(0.02 * 2.0 ** -float(channel % 5) for channel in range(20))
    builder.output(builder.conv2d(x, weights, weight_scale=scales, out=(0.3, 4)))
    file = tmp_path / "net.tflite"
    file.write_bytes(builder.build())
    configs = {
        "tensorize": {"rules": [{"match": {"op": "conv2d"}, "kernel": "ne16"}]},
        "simulate": {"inputs": {"random": 3, "seed": 4, "extremes": True}},
    }
    model = FileModel(file=str(file))
    artifacts = run_stages(model, target_named("rv32-ne16"), tmp_path / "run", until="verify", configs=configs)
    verified = json.loads((artifacts["verify"] / "verify.json").read_text())
    assert verified["mismatches"] == 0, verified["first_mismatch"]
    graph = Graph.load(artifacts["tensorize"])
    (layer,) = (layer for layer in graph.layers if layer.kind == "conv2d")
    assert len(set(graph.view(layer).constant("shift").tolist())) > 2


ENGINE: dict[str, dict[str, Any]] = {
    **{name: LAYERS[name] for name in ("3x3", "10x4", "depthwise")},
    "sum": {"op": "add", "shape": [6, 4, 24]},
}


@pytest.mark.parametrize("name", ENGINE)
def test_the_engines_own_arithmetic_is_held_to_the_bit_and_its_distance_told(tmp_path: Path, name: str) -> None:
    if shutil.which("riscv64-unknown-elf-gcc") is None:
        pytest.skip("riscv64-unknown-elf-gcc is not installed")
    configs = {
        "tensorize": {"rules": [{"match": {"op": ENGINE[name]["op"]}, "kernel": "ne16"}], "requantize": "engine"},
        "simulate": {"inputs": {"random": 2, "seed": 3, "extremes": True}},
        "verify": {"max_difference": 1, "max_share": 0.05},
    }
    model = OpModel.model_validate(ENGINE[name])
    artifacts = run_stages(model, target_named("rv32-ne16"), tmp_path, until="verify", configs=configs)
    verified = json.loads((artifacts["verify"] / "verify.json").read_text())
    assert verified["mismatches"] == 0 and "engine's own arithmetic" in verified["reference"]
    assert verified["distance"]["outputs"]["largest"] <= 1
    plan = json.loads((artifacts["tensorize"] / "plan.json").read_text())
    (layer,) = (one for one in plan["layers"] if one["distance"])
    assert layer["kernel"] == "ne16"
    assert 0 <= layer["distance"]["differing"] < layer["distance"]["reachable"] / 50
    assert layer["distance"]["largest"] <= 1
