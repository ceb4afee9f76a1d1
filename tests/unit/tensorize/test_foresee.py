"""What tensorize refuses before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.base import StageError
from stages.models.spec import ZooModel
from stages.targets.load import load_target
from stages.tensorize import STAGE, TensorizeConfig


def test_a_damaged_tuning(tmp_path: Path) -> None:
    def foresee(text: str) -> None:
        (tmp_path / "net.tuning.json").write_text(text)
        config = TensorizeConfig(tuning="net.tuning.json")
        STAGE.foresee(config, ZooModel(zoo="ds_cnn"), load_target("rv64-rvp"), tmp_path, {})

    foresee('{"format": 1, "targets": {}}')
    with pytest.raises(StageError, match=r"net\.tuning\.json cannot be read"):
        foresee("")
