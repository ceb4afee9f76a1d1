"""Networks that came as ONNX, through all stages: the firmware is what ONNX Runtime says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from stages.base import StageError
from stages.models.spec import FileModel
from tests.support.emitted import target_named
from tests.support.stages_run import run_stages

SIMULATED = {"inputs": {"random": 4, "seed": 1}}


def verified(name: str, folder: Path, **configs: Any) -> dict[str, Any]:
    """What verify says of a network of recipes/onnx."""
    model = FileModel(file=f"recipes/onnx/{name}.onnx", layout="nhwc")
    done = run_stages(
        model, target_named("rv32-scalar"), folder, until="verify", configs={"simulate": SIMULATED, **configs}
    )
    found: dict[str, Any] = json.loads((done["verify"] / "verify.json").read_text())
    return found


def test_qlinear_operators_are_exact(tmp_path: Path) -> None:
    found = verified("digits_qlinear", tmp_path)
    assert found["float"]["max_relative"] == found["float"]["layers_max_relative"] == 0
    assert found["layers_checked"] == 10
    assert found["near_ties"] is None
    assert found["reference"].startswith("ONNX Runtime ")


def test_layers_between_integers_are_exact_but_for_near_ties(tmp_path: Path) -> None:
    found = verified("digits_qdq", tmp_path, quantize={"rounding": "twice"})
    ties = found["near_ties"]
    assert 0 < ties["differing"] < ties["near"] < ties["values"] / 100
    assert found["reference"].endswith("layer by layer")
    assert 0 < found["distance"]["layers"]["share"] < 0.05


def test_a_layer_that_is_no_near_tie_fails_the_network(tmp_path: Path) -> None:
    """A bias that is off in the firmware and in the integer graph."""
    import numpy as np

    def spoil(folder: Path) -> None:
        constants = dict(np.load(folder / "constants.npz"))
        name = next(name for name in constants if name.endswith("bias"))
        constants[name] = constants[name] + 400
        np.savez(folder / "constants.npz", **constants)

    model = FileModel(file="recipes/onnx/digits_qdq.onnx", layout="nhwc")
    with pytest.raises(StageError, match="differ"):
        run_stages(
            model,
            target_named("rv32-scalar"),
            tmp_path,
            until="verify",
            configs={"simulate": SIMULATED},
            edit={"quantize": spoil},
        )
