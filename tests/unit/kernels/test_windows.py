"""How much of windows is inside the image, counted tap by tap."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from stages.backends.kernels.windows import taps_inside, whole_windows
from tests.conformance.draw import Draw
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.windows import Window

if TYPE_CHECKING:
    from stages.ir.graph import LayerView


def counted(view: LayerView, axis: int) -> list[int]:
    """Of the windows of each row or column of the output, the taps that are in the image."""
    op, image, out = view.op, range(view.inputs[0].shape[1 + axis]), range(view.outputs[0].shape[1 + axis])
    dilation = getattr(op, "dilation", (1, 1))[axis]
    first = [number * op.stride[axis] - op.padding[axis] for number in out]
    return [sum(start + tap * dilation in image for tap in range(op.kernel[axis])) for start in first]


@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_windows_of_convolutions(dilation: int) -> None:
    for kernel, stride, before, behind in product((1, 2, 3), (1, 2, 3), (0, 1, 5), (0, 2)):
        padding = (before, before, behind, behind)
        window = Window((7, 8), (kernel, kernel), (stride, stride), padding, (dilation, dilation))
        view = conv2d(Draw(1), window, 1, 1)
        for axis in range(2):
            taps = counted(view, axis)
            assert taps_inside(view, axis) == taps
            assert [*whole_windows(view, axis)] == [n for n, count in enumerate(taps) if count == kernel]
