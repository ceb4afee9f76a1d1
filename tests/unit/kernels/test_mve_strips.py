"""Strips of MVE's products: which windows are gathered so, and what happens beyond the reach of 16-bit offsets."""

from __future__ import annotations

import pytest

from stages.count.firmware import counted
from stages.kernels.mve import rows
from stages.models.operators import build
from stages.models.spec import OpModel
from tests.support.counting import calls_of
from tests.support.emitted import target_named
from tests.support.integer import integer_graph


def column_of(kernel_y: int) -> OpModel:
    shape, kernel = [kernel_y, 19, 8], [kernel_y, 6]
    return OpModel.model_validate(
        {"op": "conv2d", "shape": shape, "out_channels": 1, "kernel": kernel, "padding": "valid"}
    )


@pytest.mark.parametrize(("kernel_y", "expected"), [(1023, True), (1024, False)])
def test_a_column_is_as_long_as_offsets_of_eight_reach(kernel_y: int, expected: bool) -> None:
    graph = integer_graph(build(column_of(kernel_y)))
    assert rows.slides(graph.view(graph.layers[0])) is expected


def test_windows_of_more_lines_than_a_strip_holds_are_right() -> None:
    """Offsets of eight pixels, 9,600 bytes apart, would wrap at 16 bits."""
    target = target_named("cortex-m55")
    calls = calls_of(integer_graph(build(column_of(1200))), target)
    counts = [takes.count for _, takes in counted([one for one in calls if one.kernel.name == "mve.gemm_s8"], target)]
    assert counts and all(counts)
