"""Windows that have nothing of the image: no format has them, a graph that is built by hand may."""

from __future__ import annotations

import pytest

from stages.kernels import registry
from tests.conformance.draw import Draw
from tests.conformance.operators.pool2d import pool2d
from tests.conformance.operators.windows import Window
from tests.support.emitted import target_named

LINES = [
    ("cortex-m4", "arm_dsp.pool_rows"),
    ("cortex-m55", "mve.pool_rows"),
    ("rv64-rvp", "rvp.max_pool_lines"),
    ("rv64-rvp", "rvp.average_pool_lines"),
]


@pytest.mark.parametrize(("name", "kernel"), LINES)
@pytest.mark.parametrize("padding", [(2, 0, 0, 0), (0, 3, 0, 0)])
def test_kernels_of_lines_refuse_them(name: str, kernel: str, padding: tuple[int, int, int, int]) -> None:
    target = target_named(name)
    of = registry.kernels(target.kernels)[kernel]
    kind = "max_pool2d" if "max" in kernel else "avg_pool2d"
    inside = pool2d(Draw(1), Window((4, 4), (2, 2)), 8, op=kind)
    assert of.why_not(inside, target) == ""
    beside = pool2d(Draw(1), Window((4, 4), (2, 2)), 8, op=kind, padding=padding)
    assert "beside the image" in of.why_not(beside, target)
