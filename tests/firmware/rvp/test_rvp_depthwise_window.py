"""Depthwise windows of any kind on Spike against the integer reference: strides, borders, remainders, channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stages.graph import DepthwiseConv2D, LayerView
from stages.kernels.rvp.depthwise_window import DepthwiseWindow, swapped
from stages.targets.load import load_target
from tests.support import random_layers as draw_layers
from tests.support.random_layers import Draw
from tests.support.spike_layers import SpikeCase, run_on_spike

TARGETS = ("rv64-rvp", "rv32-rvp")
KERNEL = DepthwiseWindow()


def depthwise(
    draw: Draw,
    *,
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    channels: int = 8,
    size: tuple[int, int] | None = None,
) -> LayerView:
    """Any padding that the kernel takes: up to the window's extent - 1 on each side."""
    padding = [draw.integer(0, kernel[i % 2] - 1) for i in range(4)]
    wanted = size or (draw.integer(1, 20), draw.integer(1, 20))
    height, width = (max(wanted[i], kernel[i] - padding[i] - padding[i + 2]) for i in range(2))
    spans = (height + padding[0] + padding[2] - kernel[0], width + padding[1] + padding[3] - kernel[1])
    out = (spans[0] // stride[0] + 1, spans[1] // stride[1] + 1)
    dtype, weight_zero_point = draw_layers.weight_type(draw)
    # 255 minus a zero point of 0 is not the sum of two int8: such a layer is another kernel's.
    weights = np.minimum(draw.array((1, *kernel, channels), dtype), 127 if dtype == "int8" else 254)
    op = DepthwiseConv2D(
        **draw.clamped(),
        kernel=kernel,
        stride=stride,
        padding=tuple(padding),
        dilation=(1, 1),
        depth_multiplier=1,
        in_channels=channels,
        out_channels=channels,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
    )
    constants = draw.channel_constants(channels, kernel[0] * kernel[1]) | {"weights": weights}
    batch = draw.integer(1, 2)
    x = draw_layers.image("x", (batch, height, width, channels), draw.dtype, "NHWC")
    return draw_layers.view(op, [x], draw_layers.image("y", (batch, *out, channels), draw.dtype, "NHWC"), constants)


def case(name: str, draw: Draw, view: LayerView, **options: Any) -> SpikeCase:
    """Any values; one time in four only the extremes, which saturate most."""
    x = view.inputs[0]
    data, bounds = draw.array(x.shape, x.dtype), np.iinfo(x.dtype)
    if draw.integer(0, 3) == 0:
        data = np.where(data > np.median(data), bounds.max, bounds.min).astype(x.dtype)
    return SpikeCase(name, KERNEL, view, [data], **options)


def check(made: list[SpikeCase], target: str) -> None:
    wrong = [run for run in run_on_spike(made, load_target(target)) if run.differing]
    assert not wrong, wrong


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_of_every_extent(target, dtype, stride):
    """1x1 to 7x5 and 5x7, on images of 1 to 20 rows and columns and 1 to 20 channels."""
    made = []
    for number, kernel in enumerate([*np.ndindex(7, 5), (0, 6), (4, 6)]):
        draw = Draw(100 * stride + number, dtype)
        extent = (int(kernel[0]) + 1, int(kernel[1]) + 1)
        view = depthwise(draw, kernel=extent, stride=(stride, stride), channels=draw.integer(1, 20))
        made.append(case(f"{extent}", draw, view))
    check(made, target)


@pytest.mark.parametrize("target", TARGETS)
def test_whole_registers_of_channels(target):
    """Strips of 1 to 9 rows of outputs (four, two and one at a time) and 1 to 9 columns; strides that differ."""
    made = []
    for number in range(48):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        kernel = draw.choose((5, 5), (5, 5), (3, 5), (5, 3), (2, 2), (4, 4), (7, 3), (1, 5), (5, 1), (3, 3))
        stride = draw.choose((1, 1), (2, 2), (1, 2), (2, 1), (3, 1), (3, 2), (1, 3))
        size = ((draw.integer(0, 8)) * stride[0] + 1, draw.integer(0, 8) * stride[1] + 1)
        view = depthwise(draw, kernel=kernel, stride=stride, channels=8 * draw.integer(1, 3), size=size)
        if KERNEL.why_not(view, load_target(target)) == "":
            made.append(case(f"{number} {kernel} {stride} {size}", draw, view))
    assert len(made) > 40
    assert {swapped(made.view) for made in made} == {False, True}
    check(made, target)


@pytest.mark.parametrize("target", TARGETS)
def test_shifts_that_need_the_wide_requantization(target):
    """Dead channels, large and small shifts."""
    made = []
    for number in range(16):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        view = depthwise(draw, kernel=(5, 5), stride=draw.choose((1, 1), (2, 2)), channels=draw.choose(8, 16, 13))
        arrays = dict(view.arrays)
        shift, bias = (view.layer.constants[role] for role in ("shift", "bias"))
        chosen = draw.rng.random(arrays[shift].shape) < 0.4
        shifts = draw.rng.choice(np.array([-2, -13, -15, -20, -31], np.int32), chosen.shape)
        biases = draw.rng.integers(-(1 << 26), 1 << 26, chosen.shape)
        arrays[shift] = np.where(chosen, shifts, arrays[shift]).astype(np.int32)
        arrays[bias] = np.where(chosen, biases, arrays[bias]).astype(np.int32)
        made.append(case(f"wide {number}", draw, LayerView(view.layer, view.tensors, arrays)))
    check(made, target)


@pytest.mark.parametrize("target", TARGETS)
def test_the_meaning_alone_without_the_micro_kernel(target):
    made = []
    for number, (kernel, channels) in enumerate([((5, 5), 8), ((2, 3), 11), ((1, 7), 8), ((5, 4), 3), ((3, 5), 17)]):
        for dtype in ("int8", "uint8"):
            draw = Draw(number, dtype)
            view = depthwise(draw, kernel=kernel, stride=draw.choose((1, 1), (2, 2)), channels=channels, size=(6, 7))
            made.append(case(f"{kernel} {dtype}", draw, view, tensorized=False))
    check(made, target)


def test_what_the_kernel_refuses():
    target, draw = load_target("rv64-rvp"), Draw(0)

    def reason(**fields: Any) -> str:
        view = depthwise(draw, kernel=fields.pop("kernel", (5, 5)), size=(20, 20))
        layer = view.layer.model_copy(update={"op": view.op.model_copy(update=fields)})
        return KERNEL.why_not(LayerView(layer, view.tensors, view.arrays), target)

    assert reason() == ""
    assert "5 columns or rows" in reason(kernel=(6, 7))
    assert "stride of 1 or 2" in reason(stride=(3, 3))
    assert "dilation" in reason(dilation=(1, 2))
    assert "outside of the image" in reason(padding=(5, 0, 0, 0))
    assert "depth multiplier of 2" in reason(depth_multiplier=2)
    assert "rounds once" in reason(rounding="single")
    assert "needs the P extension" in KERNEL.why_not(depthwise(draw, kernel=(5, 5)), load_target("cortex-m4"))
