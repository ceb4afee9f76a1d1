"""`quantize: {mode: calibrate}` in a recipe: the stage that it puts before import, keys, early refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.api import run_recipe
from pipeline.errors import PipelineError, RecipeError
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipe
from pipeline.runs.workspace import Workspace
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.float_networks import images, small_network
from tests.support.optional import needs

CALIBRATE = "{mode: calibrate, data: {random: {}}}"


def recipe(folder: Path, quantize: str, more: str = "") -> Path:
    """A recipe file of the small network, with its model beside it."""
    (folder / "net.tflite").write_bytes(small_network())
    path = folder / "small.yaml"
    path.write_text(
        "schema: 1\nname: small\ntarget: rv64-rvp\n"
        f"model: {{file: {folder}/net.tflite}}\nstages:\n  quantize: {quantize}\n{more}"
    )
    return path


def names(path: Path) -> tuple[str, ...]:
    return load_recipe(str(path), root=ROOT, registry=default_registry()).sequence.names


def test_calibrate_puts_it_first(tmp_path: Path) -> None:
    usual = default_registry().kinds[1:]
    assert names(recipe(tmp_path, CALIBRATE)) == ("ptq", *usual)
    assert names(recipe(tmp_path, "{mode: prequantized}")) == usual
    assert names(recipe(tmp_path, "")) == usual


MISTAKES = [
    ("{mode: prequantized, samples: 3}", "6:34: stages.quantize.samples: needs mode: calibrate"),
    ("{mode: calibrate}", "6:20: stages.quantize.mode: calibrate needs data"),
    ("{mode: calibrate, data: {}}", "6:37: stages.quantize.data: give either files or random"),
    (
        "{mode: calibrate, data: {random: {low: 2.0, high: 1.0}}}",
        "6:63: stages.quantize.data.random.high: should be above low, 2",
    ),
    ("{mode: calibrate, data: {random: {}}, max_los: 1}", "6:51: unknown key 'max_los'; did you mean 'max_loss'?"),
    (
        "{mode: calibrate, data: {random: {}}, keep_float: [{op: cnv2d}]}",
        "6:69: stages.quantize.keep_float.0.op: no operator called 'cnv2d' has a kernel; did you mean 'conv2d'?",
    ),
]


@pytest.mark.parametrize(("quantize", "message"), MISTAKES)
def test_mistakes_are_shown_at_their_line(tmp_path: Path, quantize: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(recipe(tmp_path, quantize)), root=ROOT, registry=default_registry())
    assert f"small.yaml:{message}" in str(caught.value)


@needs("ai_edge_quantizer", "ptq")
def test_keys_follow_the_data_and_only_its_own(tmp_path: Path) -> None:
    def ingredients(quantize: str) -> dict[str, Any]:
        with Workspace(root=ROOT, store=tmp_path / "store", build=tmp_path / "build") as workspace:
            plan = workspace.plan(str(recipe(tmp_path, quantize)))
            return {action.kind: action.ingredients for action in plan}

    np.save(tmp_path / "images.npy", images())
    options = f"{{mode: calibrate, data: {{files: [{tmp_path}/images.npy]}}}}"
    first, again = ingredients(options), ingredients(options)
    assert first == again
    other = ingredients(options.replace("}}", "}, weights: int4}"))
    assert [kind for kind in first if first[kind] != other[kind]] == ["ptq"]
    assert first["quantize"] == ingredients("{mode: prequantized}")["quantize"]
    assert {kind for kind in first if "ai-edge-quantizer" in first[kind]["tools"]} == {"ptq"}
    np.save(tmp_path / "images.npy", images(seed=2))
    changed = ingredients(options)
    assert [kind for kind in first if first[kind] != changed[kind]] == ["ptq"]


@needs("ai_edge_quantizer", "ptq")
def test_inputs_are_held_against_the_quantized_network(tmp_path: Path) -> None:
    """Not against the float one that the recipe names: int8 images fit, those of another shape do not."""
    np.save(tmp_path / "int8.npy", np.zeros((2, 8, 8, 3), np.int8))
    np.save(tmp_path / "flat.npy", np.zeros((2, 64, 3), np.int8))
    inputs = "  simulate: {{inputs: {{random: 0, extremes: false, files: [{}/{}.npy]}}}}\n"
    loaded = recipe(tmp_path, CALIBRATE, inputs.format(tmp_path, "int8"))
    result = run_recipe(str(loaded), until="import", store=tmp_path / "store", build=tmp_path / "build")
    assert set(result.artifacts) == {"ptq", "import"}
    loaded = recipe(tmp_path, CALIBRATE, inputs.format(tmp_path, "flat"))
    with pytest.raises(PipelineError, match=r"simulate: .*flat.npy: has shape \[2, 64, 3\], the network's input x"):
        run_recipe(str(loaded), store=tmp_path / "store", build=tmp_path / "build")


def test_a_quantized_model_is_refused_before_anything_runs(tmp_path: Path) -> None:
    loaded = recipe(tmp_path, CALIBRATE)
    (tmp_path / "net.tflite").write_bytes((ROOT / "recipes/digits/digits_int8.tflite").read_bytes())
    pytest.importorskip("ai_edge_quantizer")
    with pytest.raises(PipelineError) as caught:
        run_recipe(str(loaded), store=tmp_path / "store", build=tmp_path / "build")
    assert "small.yaml:6:20: ptq: " in str(caught.value) and "is not a float32 network" in str(caught.value)
    assert not list((tmp_path / "store").glob("*/manifest.json"))
