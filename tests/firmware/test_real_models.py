"""Real networks, through all stages on Spike: every output byte is LiteRT's, float32 within its tolerance.

The large ones are rows of `doit bench`.
"""

from __future__ import annotations

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
