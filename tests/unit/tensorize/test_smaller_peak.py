"""Layers that take another kernel because the arena is largest there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel
from stages.report.build import build_report
from tests.support.emitted import target_named
from tests.support.stages_run import run_stages

REASON = "needs less memory"


def report_of(folder: Path, core: str, size: int, channels: int, **tensorize: Any) -> dict[str, Any]:
    """Four channels become `channels` by a pointwise layer. The second one has input and output of equal size."""
    rng, b = np.random.default_rng(1), ModelBuilder()
    x = b.input("x", (1, size, size, 4), "int8", 0.05, 0)
    for depth in (4, channels):
        weights, bias = rng.integers(-9, 10, (channels, 1, 1, depth)).astype(np.int8), np.zeros(channels, np.int32)
        x = b.conv2d(x, weights, bias, weight_scale=0.01, stride=(1, 1), out=(0.05, 0), name=f"from_{depth}")
    weights = rng.integers(-9, 10, (3, size * size * channels)).astype(np.int8)
    b.output(b.fully_connected(x, weights, np.zeros(3, np.int32), weight_scale=0.01, out=(0.05, 0), name="classes"))
    (folder / "net.tflite").write_bytes(b.build())
    target, model = target_named(core), FileModel(file=str(folder / "net.tflite"))
    configs = {"tensorize": {"count": False, **tensorize}}
    run = folder / str(tensorize)
    return build_report(
        run_stages(model, target, run, configs=configs, without=("count", "ptq")), core, target.model_dump(mode="json")
    )


def arena_of(report: dict[str, Any]) -> int:
    return max(buffer["bytes"] + buffer["offset"] for buffer in report["arena"])


def test_a_layer_takes_a_kernel_with_less_scratch_where_the_arena_is_largest(tmp_path: Path) -> None:
    smaller = report_of(tmp_path, "rv64-rvp", 6, 64)
    whole = report_of(tmp_path, "rv64-rvp", 6, 64, streaming=False)
    assert [layer["why"] == REASON for layer in smaller["layers"]] == [False, True, False]
    assert all(layer["why"] != REASON for layer in whole["layers"])
    assert arena_of(smaller) <= arena_of(whole) - 1024


@pytest.mark.parametrize(
    ("core", "size", "channels"),
    [
        pytest.param("cortex-m55", 8, 24, id="768 bytes are not worth it"),
        pytest.param("rv64-rvp", 16, 16, id="more than 2 % more instructions"),
    ],
)
def test_it_keeps_its_kernel_if_that_saves_little_or_costs_much(
    tmp_path: Path, core: str, size: int, channels: int
) -> None:
    report = report_of(tmp_path, core, size, channels)
    assert all(layer["why"] != REASON for layer in report["layers"])
