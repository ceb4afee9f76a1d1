"""Names of classes stand beside the first inference; a list of another length than the output is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.api import run_recipe
from pipeline.errors import PipelineError

NAMES = ["ash", "birch", "cedar"]


def ran(tmp_path: Path, classes: list[str]) -> str:
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
        "stages": {"simulate": {"inputs": inputs}, "report": {"classes": classes}},
    }
    result = run_recipe(recipe, build=tmp_path / "build", store=tmp_path / "store")
    return (result.folder / "report.html").read_text()


def test_classes_are_called_by_their_names(tmp_path: Path) -> None:
    page = ran(tmp_path, NAMES)
    assert "x.npy[0], labelled cedar" in page
    shown = [page.index(f">{name}<") for name in ("birch", "cedar", "ash")]
    assert shown == sorted(shown), "the largest output first"


def test_another_number_of_names_is_refused_once_the_model_is_known(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"report: 2 class names; the network's first output has 3 elements"):
        ran(tmp_path, NAMES[:2])
    log = next(tmp_path.glob("build/**/log.txt")).read_text()
    assert " import    | done" in log and " layout    | " not in log
