"""What NE16's own arithmetic costs: trained networks on labelled inputs, beside LiteRT, as docs/ne16.md has it."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.models.spec import FileModel
from stages.models.tflite_reader import TensorInfo, read
from stages.reference.interpreter import Reference
from tests.support.emitted import ROOT, target_named
from tests.support.shared_models import shared_models
from tests.support.stages_run import run_stages

pytestmark = pytest.mark.skipif(shutil.which("riscv64-unknown-elf-gcc") is None, reason="no RISC-V compiler")
# MLPerf Tiny's files, and the folder with inputs of each.
OFFICIAL = {
    "kws": ("kws_ref_model.tflite", "aww"),
    "vww": ("vww_96_int8.tflite", "vww"),
    "ic": ("pretrainedResnet_quant.tflite", "resnet"),
    "ad": ("ad01_int8.tflite", "toycar"),
}


LEAST = 10  # inputs that a share has


def quantized(data: bytes, tensor: TensorInfo) -> np.ndarray:
    """What a file of MLPerf Tiny's inputs is to the network: float32 values, or pixels from 0 to 255."""
    pixels = len(data) == np.prod(tensor.shape)
    values = np.frombuffer(data, np.uint8).astype(np.float32) if pixels else np.frombuffer(data, np.float32)
    scaled = np.round(values / np.float32(tensor.scale[0])) + tensor.zero_point[0]
    return np.clip(scaled, -128, 127).astype(np.int8).reshape(tensor.shape)


def labelled(name: str, folder: Path) -> tuple[Path, dict[str, Any], np.ndarray]:
    """A network's file, the option `inputs` of simulate, and the inputs; skips where the files are not there."""
    if name == "digits":
        place = ROOT / "recipes/digits"
        inputs = {"files": [str(place / "heldout_int8.npy")], "labels": str(place / "labels.npy")}
        return place / "digits_int8.tflite", inputs, np.load(place / "heldout_int8.npy")
    file, kind = OFFICIAL[name]
    (model,), (table,) = shared_models(f"mlperf_tiny/{file}"), shared_models(f"inputs/{kind}/output_labels.csv")
    info = read(model.read_bytes())
    found = [
        (quantized(path.read_bytes(), info.tensors[info.inputs[0]]), int(row["label_idx"]))
        for row in csv.DictReader(table.read_text().splitlines())
        if (path := table.parent / "input" / f"{row['i']}.bin").exists()
    ]
    data = np.stack([values for values, _ in found])
    np.save(folder / "inputs.npy", data)
    inputs = {"files": [str(folder / "inputs.npy")]}
    if name != "ad":
        np.save(folder / "labels.npy", np.array([label for _, label in found]))
        inputs["labels"] = str(folder / "labels.npy")
    return model, inputs, data


def some_of(inputs: dict[str, Any], data: np.ndarray, step: int, folder: Path) -> tuple[dict[str, Any], np.ndarray]:
    """One in `step` of the inputs, with their labels."""
    made = {"files": [str(folder / "some.npy")]}
    np.save(folder / "some.npy", data[::step])
    if "labels" in inputs:
        np.save(folder / "labels_of_some.npy", np.load(inputs["labels"])[::step])
        made["labels"] = str(folder / "labels_of_some.npy")
    return made, data[::step]


def scores_apart(artifacts: dict[str, Path], model: Path, data: np.ndarray) -> float:
    """By what share the mean squared errors of the reconstruction, which tell anomalies, differ from LiteRT's."""
    info, oracle = read(model.read_bytes()), Reference(model.read_bytes(), preserve_all=False)
    (given, made) = (info.tensors[index] for index in (info.inputs[0], info.outputs[0]))

    def real(values: np.ndarray, tensor: TensorInfo) -> np.ndarray:
        return (values.reshape(-1).astype(np.float64) - tensor.zero_point[0]) * tensor.scale[0]

    outputs = np.fromfile(artifacts["simulate"] / "outputs.bin", np.int8).reshape(len(data), -1)
    apart = []
    for values, ours in zip(data, outputs, strict=True):
        wanted, theirs = real(values, given), oracle.run([values])[0]
        mine, litert = (float(((wanted - real(y, made)) ** 2).mean()) for y in (ours, theirs))
        apart.append(abs(mine - litert) / litert)
    return max(apart)


@pytest.mark.parametrize("name", ["digits", *OFFICIAL])
def test_labelled_inputs_beside_litert(tmp_path: Path, name: str, every: int) -> None:
    """No class is another than LiteRT's, and the figures of all inputs are those of the table in docs/ne16.md."""
    model, inputs, data = labelled(name, tmp_path)
    if every > 1:
        inputs, data = some_of(inputs, data, min(every, len(data) // LEAST), tmp_path)
    configs = {
        "tensorize": {"requantize": "engine"},
        "simulate": {"inputs": {"random": 0, "extremes": False, **inputs}},
    }
    artifacts = run_stages(
        FileModel(file=str(model)), target_named("rv32-ne16"), tmp_path / "run", until="verify", configs=configs
    )
    verified = json.loads((artifacts["verify"] / "verify.json").read_text())
    assert verified["mismatches"] == 0 and "engine's own arithmetic" in verified["reference"]
    distance, accuracy = verified["distance"]["outputs"], verified["accuracy"]
    if accuracy is None:
        worst = scores_apart(artifacts, model, data)
        assert worst < 0.03
        right = f"anomaly scores within {100 * worst:.1f} % | "
    else:
        assert accuracy["images"] == len(data) and accuracy["agree"] == 1
        right = " | ".join(f"{100 * accuracy[side]:.1f} %" for side in ("litert", "ours"))
    if every > 1:
        return
    row = f"| {name} | {len(data)} | {right} | {100 * distance['share']:.1f} % | {distance['largest']:.0f} |"
    (told,) = re.findall(rf"^\| {name} \| \d+ .*$", (ROOT / "docs/ne16.md").read_text(), re.MULTILINE)
    assert told == row
