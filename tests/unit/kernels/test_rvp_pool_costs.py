"""What pools of RISC-V P cost where pixels are whole words of 4 bytes and not of 8: RV64 takes lanes there."""

from __future__ import annotations

from typing import Any

import pytest

from stages.calibrate.cases import cases
from stages.calibrate.measure import measure
from stages.kernels.rvp.pool_lines import MaxPoolLines
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.tensorize.costs import estimated
from tests.support.emitted import target_named
from tests.support.integer import integer_graph

NAMES = ("rvp.max_pool_lines", "rvp.pool2d")
LAYERS: tuple[dict[str, Any], ...] = (
    {"op": "max_pool2d", "shape": (16, 16, 12), "kernel": (1, 3), "padding": "valid"},
    {"op": "max_pool2d", "shape": (14, 14, 44), "kernel": (3, 3)},
    {"op": "max_pool2d", "shape": (9, 9, 4), "kernel": (7, 7)},
    {"op": "avg_pool2d", "shape": (7, 7, 44), "kernel": (7, 7), "padding": "valid"},
    {"op": "avg_pool2d", "shape": (12, 12, 12), "kernel": (3, 3)},
)


def counted(target_name: str) -> dict[str, dict[str, int]]:
    """Instructions by layer and kernel; estimates are near to them."""
    target, found = target_named(target_name), dict[str, dict[str, int]]()
    graphs = [integer_graph(build(OpModel.model_validate(options))) for options in LAYERS]
    for one, count in measure([one for one in cases(graphs, target) if one.kernel.name in NAMES], target):
        estimate = estimated(one.kernel, one.view, one.params, target)
        assert estimate == pytest.approx(count, rel=0.22), (one.signature, one.kernel.name)
        found.setdefault(one.signature, {})[one.kernel.name] = count
    return found


def test_lanes_take_about_as_many_instructions_as_registers_of_rv32() -> None:
    wide, narrow = counted("rv64-rvp"), counted("rv32-rvp")
    assert wide.keys() == narrow.keys()
    for layer, counts in wide.items():
        assert min(counts.values()) <= 1.04 * min(narrow[layer].values()), layer


@pytest.mark.parametrize(
    ("shape", "kernel", "entry"),
    [((16, 16, 12), (1, 3), "lane_lines"), ((24, 24, 12), (3, 1), "lines"), ((16, 16, 16), (1, 3), "whole_lines")],
)
def test_lines_go_by_lanes_where_that_saves_shifts_and_copies(
    shape: tuple[int, int, int], kernel: tuple[int, int], entry: str
) -> None:
    spec = OpModel.model_validate({"op": "max_pool2d", "shape": shape, "kernel": kernel, "padding": "valid"})
    graph, target = integer_graph(build(spec)), target_named("rv64-rvp")
    made = MaxPoolLines().lower(graph.view(graph.layers[0]), None, target)
    assert f"rvp_max_{entry}_s8" in str(made.intrinsics[0].impl)
