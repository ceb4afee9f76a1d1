"""A float network to firmware: the recipe digits_ptq, and layers kept float, through all stages."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from pipeline.api import run_recipe
from stages.ir.reference import Reference
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.optional import needs

pytestmark = needs("ai_edge_quantizer", "ptq")
DIGITS = ROOT / "recipes/digits"


def test_digits_from_float_to_firmware(tmp_path: Path) -> None:
    result = run_recipe("digits_ptq", store=tmp_path / "store", build=tmp_path / "build")
    report = result.report
    assert report is not None
    left = tmp_path / "build/digits_ptq/rv64-rvp"
    # Accuracies by LiteRT alone.
    held, labels = np.load(DIGITS / "heldout_float32.npy"), np.load(DIGITS / "labels.npy")
    exact = Reference((DIGITS / "digits_float32.tflite").read_bytes(), preserve_all=False)
    integers = Reference((left / "quantized.tflite").read_bytes(), preserve_all=False)
    scale, zero = integers.inputs[0].scale[0], integers.inputs[0].zero_point[0]
    coded = np.clip(np.rint(held / scale) + zero, -128, 127).astype(np.int8)
    right = [
        round(float(np.mean(np.stack([oracle.run([one[None]])[0][0] for one in given]).argmax(1) == labels)), 6)
        for oracle, given in ((exact, held), (integers, coded))
    ]
    found = report["quantization"]
    assert found["accuracy"]["float"] == right[0] and found["accuracy"]["quantized"] == right[1]
    assert right[1] >= right[0] - 0.01 and right[0] > 0.95
    assert found["target"] == {"samples": 360, "accuracy": right[1]}
    assert report["verify"]["mismatches"] == 0 and report["legalize"]["tensors"] == {"int8": 10}
    assert [layer["op"] for layer in found["layers"]] == [layer["op"] for layer in report["layers"]]
    page = (left / "report.md").read_text()
    for number in (
        f"| float | 360 | {100 * right[0]:.2f} % |",
        f"| quantized, firmware | 360 | {100 * right[1]:.2f} % |",
    ):
        assert number in page
    picture = ElementTree.fromstring((left / "ranges.svg").read_text())
    drawn = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "conv" in drawn and "![ranges of the layers](ranges.svg)" in page
    # Without it, what it left goes.
    without = {"schema": 1, "name": "digits_ptq", "extends": "digits_rvp"}
    run_recipe(without, store=tmp_path / "store", build=tmp_path / "build")
    assert not (left / "ranges.svg").exists()


def run_on_the_host(name: str, folder: Path, quantize: dict[str, Any]) -> dict[str, Any]:
    """The report of a recipe on the machine that builds, on two random inputs and the extremes."""
    inputs = {"random": 2, "extremes": True, "files": [], "labels": None}
    stages = {"quantize": quantize, "simulate": {"inputs": inputs}}
    recipe = {"schema": 1, "extends": name, "name": "digits_host", "target": "host", "stages": stages}
    report = run_recipe(recipe, store=folder / "store", build=folder / "build").report
    assert report is not None
    assert report["verify"]["inputs"] == 4 and report["verify"]["mismatches"] == 0
    return report


def test_layers_that_stay_float_run_among_integers(tmp_path: Path) -> None:
    keep = [{"op": "depthwise_conv2d"}, {"name": "dense"}]
    report = run_on_the_host("digits_ptq", tmp_path, {"keep_float": keep, "weights": "int4"})
    types = {layer["name"]: layer["dtype"] for layer in report["quantization"]["layers"]}
    assert types["depthwise"] == types["dense"] == "float32" and types["conv"] == "int8"


def test_16_bit_activations_run_as_litert_does(tmp_path: Path) -> None:
    assert run_on_the_host("digits_ptq", tmp_path, {"activations": "int16"})["legalize"]["tensors"]["int16"] >= 6


@needs("onnx", "onnx")
@needs("onnxruntime", "onnx")
def test_onnx_from_float_to_firmware(tmp_path: Path) -> None:
    report = run_on_the_host("digits_onnx_ptq", tmp_path, {})
    found = report["quantization"]
    assert report["legalize"]["tensors"].keys() == {"int8"}
    assert found["accuracy"]["float"] > 0.95 and found["accuracy"]["quantized"] >= found["accuracy"]["float"] - 0.01
