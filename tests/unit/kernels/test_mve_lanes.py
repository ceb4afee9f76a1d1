"""Depthwise layers of MVE with channels in the lanes: what vectors read, what is one row, which weights meet."""

from itertools import product

import numpy as np
import pytest

from stages.backends.cortex_m.kernels.mve.lanes import GROUP, ChannelGroup, Lanes, lanes_of
from stages.backends.kernels import registry
from stages.ir.graph import LayerView
from tests.conformance.draw import Draw
from tests.conformance.operators.depthwise_conv2d import depthwise
from tests.conformance.operators.windows import Window
from tests.support.emitted import target_named

SIZES = ((1, 1), (1, 5), (4, 1), (3, 4), (6, 7), (9, 20))
KERNELS = ((1, 1), (1, 2), (2, 1), (3, 3))
PADDINGS = ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 0, 0), (1, 0, 0, 0))


def layer(window: Window, channels: int, dtype: str = "int8", **fields: object) -> LayerView:
    return depthwise(Draw(channels, dtype), window, channels, **fields)


def reads(lanes: Lanes, part: ChannelGroup) -> tuple[int, int]:
    """The first byte that a part's vectors read, and the one behind the last: of the image, or of a band's lines."""
    fields, walk = lanes.fields(part), lanes.walk
    rows = fields["band"] or fields["rows"]
    at, channels = (0, min(part.channels, GROUP)) if fields["by_group"] else (part.first, part.channels)
    starts = [at, at + max(channels - part.lanes, 0)]
    steps = (fields["x_row"] + fields["columns"] * fields["x_step"], fields["x_step"])
    ends = product((0, rows - 1), (0, walk.columns - 1), (0, *lanes.offsets[: lanes.taps - 1]), starts)
    first = [y * steps[0] + x * steps[1] + tap + start for y, x, tap, start in ends]
    return min(first), max(first) + part.lanes


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7, 12, 15, 16, 19, 33, 200])
def test_vectors_read_nothing_outside(channels: int, dtype: str) -> None:
    seen = set()
    for size, kernel, padding, stride in product(SIZES, KERNELS, PADDINGS, (1, 2, 3)):
        window = Window(size, kernel, (stride, stride), padding)
        if min(window.out) < 1 or any(0 < padding[i] >= kernel[i % 2] for i in range(4)):
            continue
        lanes = lanes_of(layer(window, channels, dtype), "exact")
        room = size[0] * size[1] * channels if lanes.in_place else lanes.scratch
        for part in lanes.parts:
            first, behind = reads(lanes, part)
            assert first >= 0 and behind <= room, (window, part)
        seen.add(lanes.in_place)
    assert seen == ({True, False} if dtype == "int8" else {False})


@pytest.mark.parametrize(
    ("kernel", "lowest", "reason"),
    [
        ((1, 2), (0, 1), True),
        ((2, 2), (1, 2), False),
        ((2, 2), (2, 3), True),
        ((1, 3), (0, 1), False),
        ((1, 3), (1, 2), True),
        ((1, 1), (0,), False),
    ],
)
def test_two_weights_that_meet_are_not_both_lowest(
    kernel: tuple[int, int], lowest: tuple[int, ...], reason: bool
) -> None:
    """Products of two taps are added in int16; an odd number begins with one alone."""
    weights = np.zeros((1, *kernel, 20), np.int8)
    weights.reshape(-1, 20)[list(lowest), 17] = -128
    view = layer(Window((5, 5), kernel), 20, weights=weights, weight_type=("int8", 0))
    target = target_named("cortex-m55")
    kernels = registry.kernels(target.kernels)
    assert kernels["mve.depthwise_s8"].why_not(view, target).startswith("two paired weights are -128") is reason
