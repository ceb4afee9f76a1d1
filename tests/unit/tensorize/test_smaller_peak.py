"""Layers that take another kernel because the arena is largest there."""

from pathlib import Path
from typing import Any

import pytest

from stages.report.build import build_report
from tests.support.convolutions import convolutions
from tests.support.emitted import target_named
from tests.support.stages_run import run_stages

REASON = "needs less memory"


def report_of(folder: Path, core: str, size: int, channels: int, **tensorize: Any) -> dict[str, Any]:
    """Four channels become `channels` by a pointwise layer. The second one has input and output of equal size."""
    layers = [(f"from_{depth}", (channels, 1, 1, depth)) for depth in (4, channels)]
    network = convolutions((1, size, size, 4), *layers, classes=3)
    configs = {"tensorize": {"count": False, **tensorize}}
    run = run_stages(network, core, folder / str(tensorize), configs=configs, without=("count", "ptq"))
    return build_report(run, core, target_named(core).model_dump(mode="json"))


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
