"""Float operators on a core with an FPU: every value LiteRT's, and instructions that do not depend on a lucky shape."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.api import run_recipe

MOST_FOR_EACH_PRODUCT = 3.25
"""Multiplication and addition are two; the rest is loads, pointers and the branch, shared by a block of 16."""


def convolution(size: tuple[int, int, int], channels: int, kernel: tuple[int, int], **more: Any) -> dict[str, Any]:
    shape = {"shape": list(size), "out_channels": channels, "kernel": list(kernel)}
    return {"op": "conv2d", "dtype": "float32", "activation": "relu", **shape, **more}


# Shapes of Inception: odd and prime widths, asymmetric kernels, stride 2, and weights of neighbouring channels that lie
# further apart than an immediate offset reaches.
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(convolution((17, 17, 32), 32, (1, 7)), id="1x7"),
        pytest.param(convolution((17, 17, 32), 32, (7, 1)), id="7x1"),
        pytest.param(convolution((9, 9, 80), 32, (3, 3), padding="valid"), id="prime-width-distant-channels"),
        pytest.param(convolution((35, 35, 24), 16, (3, 3), stride=[2, 2], padding="valid"), id="stride-2"),
        pytest.param(convolution((8, 8, 96), 32, (3, 1)), id="3x1"),
        pytest.param(convolution((8, 8, 520), 16, (1, 1)), id="deep-1x1"),
    ],
)
def test_a_convolution_of_any_shape_takes_about_three_instructions_per_product(
    tmp_path: Path, model: dict[str, Any]
) -> None:
    recipe = {
        "schema": 1,
        "name": "float_convolution",
        "target": "rv64-scalar",
        "model": model,
        "stages": {"simulate": {"inputs": {"random": 1, "seed": 1, "extremes": False}}},
    }
    report = run_recipe(recipe, store=tmp_path / "store", build=tmp_path / "build").report
    assert report is not None
    assert report["verify"]["mismatches"] == 0 and report["verify"]["float"]["max_relative"] == 0
    assert report["instructions"]["total"] / report["model"]["macs"] < MOST_FOR_EACH_PRODUCT
