"""Real networks, through all stages on Spike: every output byte is LiteRT's, float32 within its tolerance.

The large ones are rows of `doit bench`.
"""

from pathlib import Path

import pytest

from pipeline.api import run_recipe
from tests.support.shared_models import shared_models


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("mlperf_tiny/*.tflite", "rv64-rvp"),
        ("small/*.tflite", "rv32-rvp"),
        ("hosted/mobilenet_v1_0.25_128_quant.tflite", "rv64-rvp"),
        ("float/kws_ref_model_float32.tflite", "rv64-scalar"),
    ],
)
def test_real_models_run_and_verify(tmp_path: Path, pattern: str, target: str) -> None:
    for path in shared_models(pattern):
        variables = {"model": str(path), "target": target}
        run = run_recipe("kws_rvp", variables, store=tmp_path / "store", build=tmp_path / "build")
        assert run.report is not None
        assert run.report["model"]["name"] == path.stem
        assert run.report["verify"]["mismatches"] == 0 and run.report["verify"]["inputs"] == 4, path
        assert run.report["verify"]["layers_checked"] > 0 and run.report["instructions"]["total"] > 0, path


def test_a_voice_detector_keeps_its_state(tmp_path: Path) -> None:
    """silero-vad: a sample rate that the recipe fixes, branches on shapes, an LSTM whose state is an input."""
    pytest.importorskip("onnxruntime")
    for path in shared_models("refused/silero_vad_16k_op15.onnx"):
        shapes = {"input": [1, 576], "state": [2, 1, 128]}
        recipe = {
            "schema": 1,
            "name": "vad",
            "target": "host",
            "model": {"file": str(path), "shapes": shapes, "constants": {"sr": 16000}, "states": {"stateN": "state"}},
            "stages": {"simulate": {"inputs": {"random": 1, "steps": 12, "extremes": False}}},
        }
        report = run_recipe(recipe, store=tmp_path / "store", build=tmp_path / "build").report
        assert report is not None
        assert (report["verify"]["mismatches"], report["verify"]["inputs"]) == (0, 12)
        assert report["verify"]["float"]["layers_max_relative"] < 1e-4
