"""Names of classes stand beside the first inference; a list of another length than the output is refused."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.api import run_recipe
from stages.backends.targets.load import load_target
from stages.base import StageError
from stages.ir.models.spec import FileModel
from stages.report.config import ReportConfig
from stages.report.stage import STAGE
from stages.support.system.installation import INSTALLATION


def test_classes_are_called_by_their_names(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1, 9, 2], [7, 0, 0]], np.int8))
    np.save(tmp_path / "labels.npy", np.array([2, 0]))
    inputs = {
        "random": 0,
        "extremes": False,
        "files": [str(tmp_path / "x.npy")],
        "labels": str(tmp_path / "labels.npy"),
    }
    recipe = {
        "schema": 1,
        "name": "named",
        "target": "host",
        "model": {"op": "relu", "shape": [3]},
        "stages": {"simulate": {"inputs": inputs}, "report": {"classes": ["ash", "birch", "cedar"]}},
    }
    result = run_recipe(recipe, build=tmp_path / "build", store=tmp_path / "store")
    page = (result.folder / "report.html").read_text()
    assert "x.npy[0], labelled cedar" in page
    shown = [page.index(f">{name}<") for name in ("birch", "cedar", "ash")]
    assert shown == sorted(shown), "the largest output first"


def test_another_number_of_names_is_refused_before_the_run() -> None:
    with pytest.raises(StageError, match="2 class names; the network's first output has 10 elements") as caught:
        STAGE.preflight(
            ReportConfig(classes=("ash", "birch")),
            FileModel(file="recipes/digits/digits_int8.tflite"),
            load_target("host"),
            INSTALLATION,
            {},
        )
    assert caught.value.at == ("stages", "report", "classes")
