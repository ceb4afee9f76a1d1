"""Recipes of networks in a folder that an environment variable names: where it lies decides nothing."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.api import run_recipe
from pipeline.errors import PipelineError
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.optional import needs

pytestmark = needs("ai_edge_quantizer", "ptq")
RECIPE = {
    "schema": 1,
    "name": "moved",
    "target": "host",
    "model": {"file": "${NETS}/digits_float32.tflite"},
    "stages": {
        "quantize": {"mode": "calibrate", "data": {"files": ["${NETS}/data/*.npy"]}, "samples": 20},
        "simulate": {"inputs": {"random": 0, "extremes": False, "files": ["${NETS}/data/*.npy"]}},
    },
}


def test_a_folder_that_moves_changes_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "here"
    (place / "data").mkdir(parents=True)
    shutil.copy(ROOT / "recipes/digits/digits_float32.tflite", place)
    np.save(place / "data/some.npy", np.load(ROOT / "recipes/digits/calibration_float32.npy")[:20])
    where = {"store": tmp_path / "store", "build": tmp_path / "build"}
    monkeypatch.setenv("NETS", str(place))
    first = run_recipe(RECIPE, **where)
    assert first.report is not None and first.report["verify"]["mismatches"] == 0
    assert str(tmp_path) not in (first.artifacts["simulate"] / "inputs.json").read_text()
    place.rename(tmp_path / "there")
    with pytest.raises(PipelineError) as caught:
        run_recipe(RECIPE, **where)
    assert str(caught.value).splitlines()[-1] == (
        f"the environment variable NETS names the folder; it is {place}"
    ) and "no file matches ${NETS}/data/*.npy" in str(caught.value)
    monkeypatch.setenv("NETS", str(tmp_path / "there"))
    assert all(stage.cached for stage in run_recipe(RECIPE, **where).stages)
    monkeypatch.delenv("NETS")
    with pytest.raises(PipelineError, match="the environment variable NETS names the folder; it is not set"):
        run_recipe(RECIPE, **where)
