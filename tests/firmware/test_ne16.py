"""Layers on NE16, requantized by the core or by the extended engine: equal to LiteRT, from file to simulator."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel, OpModel, ZooModel
from tests.support.emitted import ROOT, target_named
from tests.support.stages_run import run_stages, verified

LAYERS: dict[str, dict[str, Any]] = {
    "3x3": {"op": "conv2d", "shape": [9, 11, 20], "out_channels": 36, "kernel": [3, 3]},
    "3x3 in steps of two": {"op": "conv2d", "shape": [9, 12, 5], "out_channels": 6, "kernel": [3, 3], "stride": [2, 2]},
    "depthwise": {"op": "depthwise_conv2d", "shape": [8, 7, 18], "kernel": [3, 3], "stride": [2, 2]},
    "1x1 in steps of two": {"op": "conv2d", "shape": [7, 6, 33], "out_channels": 9, "kernel": [1, 1], "stride": [2, 2]},
    "10x4": {"op": "conv2d", "shape": [23, 10, 2], "out_channels": 24, "kernel": [10, 4], "stride": [2, 2]},
    "units": {"op": "fully_connected", "shape": [70], "out_channels": 41},
}


INPUTS = {"inputs": {"random": 2, "seed": 3, "extremes": True}}


def on_engine(op: str, **more: Any) -> dict[str, Any]:
    """The options with which layers of this operator are the engine's."""
    return {"tensorize": {"rules": [{"match": {"op": op}, "kernel": "ne16"}], **more}, "simulate": INPUTS}


def planned(folder: Path) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = json.loads((folder / "run/tensorize/plan.json").read_text())["layers"]
    return layers


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("target", ["rv32-ne16", "rv32-ne16x"])
def test_a_layer_is_exact(tmp_path: Path, name: str, target: str) -> None:
    found = verified(OpModel.model_validate(LAYERS[name]), target, tmp_path, on_engine(LAYERS[name]["op"]))
    assert found["mismatches"] == 0 and found["outputs_checked"] > 0, found["first_mismatch"]
    assert [layer["kernel"] for layer in planned(tmp_path) if layer["program"]] == ["ne16"]


@pytest.mark.parametrize("pixels", [1, 6])
def test_channels_of_very_different_scales_are_exact(tmp_path: Path, pixels: int) -> None:
    """Each has a multiplier and a shift of its own; a single pixel is requantized in another way than several."""
    random, builder = np.random.default_rng(5), ModelBuilder()
    x = builder.input("x", (1, 1, pixels, 24), "int8", 0.05, -3)
    weights = random.integers(-127, 128, (20, 1, 1, 24), dtype=np.int8)
    scales = tuple(0.02 * 2.0 ** -float(channel % 5) for channel in range(20))
    builder.output(builder.conv2d(x, weights, weight_scale=scales, out=(0.3, 4)))
    found = verified(builder.build(), "rv32-ne16", tmp_path, on_engine("conv2d"))
    assert found["mismatches"] == 0, found["first_mismatch"]
    graph = Graph.load(tmp_path / "run/tensorize")
    (layer,) = (layer for layer in graph.layers if layer.kind == "conv2d")
    assert len(set(graph.view(layer).constant("shift").tolist())) > 2


ENGINE: dict[str, dict[str, Any]] = {
    **{name: LAYERS[name] for name in ("3x3", "10x4", "depthwise")},
    "sum": {"op": "add", "shape": [6, 4, 24]},
}


@pytest.mark.parametrize("name", ENGINE)
def test_the_engines_own_arithmetic_is_held_to_the_bit_and_its_distance_reported(tmp_path: Path, name: str) -> None:
    configs = on_engine(ENGINE[name]["op"], requantize="engine")
    configs["verify"] = {"max_difference": 1, "max_share": 0.05}
    found = verified(OpModel.model_validate(ENGINE[name]), "rv32-ne16", tmp_path, configs)
    assert found["mismatches"] == 0 and "engine's own arithmetic" in found["reference"]
    assert found["distance"]["outputs"]["largest"] <= 1
    (layer,) = (one for one in planned(tmp_path) if one["distance"])
    assert layer["kernel"] == "ne16"
    assert 0 <= layer["distance"]["differing"] < layer["distance"]["reachable"] / 50
    assert layer["distance"]["largest"] <= 1


def test_digits_with_the_engines_own_arithmetic_beside_litert(tmp_path: Path) -> None:
    """No class is another than LiteRT's, and the figures are those of the table in docs/explanation/ne16.md."""
    digits = ROOT / "recipes/digits"
    inputs = {"files": [str(digits / "heldout_int8.npy")], "labels": str(digits / "labels.npy")}
    configs = {
        "tensorize": {"requantize": "engine"},
        "simulate": {"inputs": {"random": 0, "extremes": False, **inputs}},
    }
    found = verified(FileModel(file=str(digits / "digits_int8.tflite")), "rv32-ne16", tmp_path, configs)
    assert found["mismatches"] == 0 and "engine's own arithmetic" in found["reference"]
    distance, accuracy = found["distance"]["outputs"], found["accuracy"]
    assert accuracy["agree"] == 1
    right = " | ".join(f"{100 * accuracy[side]:.1f} %" for side in ("litert", "ours"))
    row = f"| digits | {accuracy['images']} | {right} | {100 * distance['share']:.1f} % | {distance['largest']:.0f} |"
    assert f"\n{row}\n" in (ROOT / "docs/explanation/ne16.md").read_text()


def misbehaving(emitted: Path) -> None:
    """A driver that starts jobs which it has not acquired, of constants that are all ones."""
    (driver,) = emitted.rglob("ne16.c")
    text = driver.read_text()
    assert text.count("(int32_t)engine[ACQUIRE] < 0") == 1
    driver.write_text(text.replace("(int32_t)engine[ACQUIRE] < 0", "engine[3] == 0x101"))
    (weights,) = emitted.rglob("weights*.bin")
    weights.write_bytes(b"\x7f" * weights.stat().st_size)


def test_what_silicon_accepts_is_warned_of_with_its_layer(tmp_path: Path) -> None:
    configs = on_engine("conv2d", requantize="engine")
    configs["simulate"] = {"inputs": {"random": 2, "seed": 3, "extremes": False}}
    model = OpModel.model_validate({"op": "conv2d", "shape": [6, 6, 16], "out_channels": 16, "kernel": [3, 3]})
    target = target_named("rv32-ne16")
    good, bad = (
        run_stages(model, target, tmp_path / name, until="report", configs=configs, without=("verify",), edit=edit)
        for name, edit in (("good", None), ("bad", {"emit": misbehaving}))
    )
    assert json.loads((good["report"] / "report.json").read_text())["warnings"] == []
    report = json.loads((bad["report"] / "report.json").read_text())
    index, name = next((layer["index"], layer["name"]) for layer in report["layers"] if layer["op"] == "conv2d")
    layer = f"ne16, layer {index} (conv2d) '{name}'"
    # Two inferences of one job.
    assert f"{layer}: task words without ACQUIRE: 2" in report["warnings"]
    (wrapped,) = (line for line in report["warnings"] if "wrapped" in line)
    assert wrapped.startswith(f"{layer}: outputs whose sum or product wrapped: ")
    assert 0 < int(wrapped.rpartition(" ")[2].replace(",", "")) <= 2 * 6 * 6 * 16
    assert f"- **warning**: {wrapped}" in (bad["report"] / "report.md").read_text()


@pytest.mark.parametrize(("zoo", "target"), [("resnet_8", "rv32-ne16"), ("ds_cnn", "rv32-ne16x")])
def test_nothing_is_laid_out_anew_or_flipped_between_layers_of_the_engine(
    tmp_path: Path, zoo: str, target: str
) -> None:
    """No recipe says a layout; NE16 reads NHWC, as the core does, and uint8, which the model's input is flipped to."""
    artifacts = run_stages(ZooModel(zoo=zoo), target_named(target), tmp_path, until="tensorize")
    graph = Graph.load(artifacts["tensorize"])
    plan = json.loads((artifacts["tensorize"] / "plan.json").read_text())
    on_engine = {layer["index"] for layer in plan["layers"] if layer["kernel"] == "ne16"}
    convolutions = {layer.index for layer in graph.layers if layer.kind in ("conv2d", "depthwise_conv2d")}
    assert convolutions <= on_engine
    moves = [layer for layer in graph.layers if layer.kind in ("layout", "pad", "requantize", "transpose")]
    assert {layer.kind for layer in moves} <= {"requantize"}
    for flip in moves:
        assert flip.inputs == tuple(graph.inputs) or not any(index > flip.index for index in convolutions), flip.name
    assert len(moves) <= 2
