"""The scratch of MVE's depthwise kernels: the lines that a row of windows covers, and no more."""

from __future__ import annotations

import pytest

from stages.kernels.mve.lines import lines
from tests.conformance.draw import Draw
from tests.conformance.operators.depthwise_conv2d import depthwise
from tests.conformance.operators.windows import Window


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window((20, 30), (3, 3), padding=(1, 1, 1, 1)), (3, 32)),
        (Window((20, 31), (3, 5), (1, 2)), (3, 31)),
        (Window((20, 30), (5, 3), dilation=(2, 4)), (9, 30)),
    ],
    ids=str,
)
def test_lines_of_sixteen_channels(window: Window, expected: tuple[int, int]) -> None:
    assert lines(depthwise(Draw(1), window, 8)) == (expected[0], 16 * expected[1])
