"""The rvp kernels on Spike against the integer reference, over shapes, zero points and shifts that cross every tail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stages.graph import Conv2D, DepthwiseConv2D, FullyConnected, LayerView, Pool2D
from stages.kernels.registry import kernels
from stages.targets.load import load_target
from tests.support import random_layers as draw_layers
from tests.support.random_layers import Draw
from tests.support.spike_layers import SpikeCase, run_on_spike

TARGETS = ("rv64-rvp", "rv32-rvp")


def conv2d(draw: Draw, *, size: tuple[int, int], depth: int, units: int, **window: Any) -> LayerView:
    """A convolution with one group on NHWC data."""
    fields = {"kernel": (1, 1), "stride": (1, 1), "dilation": (1, 1), "padding": (0, 0, 0, 0)} | window
    top, left, bottom, right = fields["padding"]
    padded = (size[0] + top + bottom, size[1] + left + right)
    spans = [padded[i] - (fields["kernel"][i] - 1) * fields["dilation"][i] - 1 for i in range(2)]
    out = tuple(spans[i] // fields["stride"][i] + 1 for i in range(2))
    dtype, weight_zero_point = draw_layers.weight_type(draw)
    op = Conv2D(
        **fields,
        **draw.clamped(),
        in_channels=depth,
        out_channels=units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
    )
    weights = draw.array((units, *fields["kernel"], depth), dtype)
    constants = draw.channel_constants(units, weights[0].size) | {"weights": weights}
    x = draw_layers.image("x", (1, *size, depth), draw.dtype, "NHWC")
    return draw_layers.view(op, [x], draw_layers.image("y", (1, *out, units), draw.dtype, "NHWC"), constants)


def depthwise3x3(draw: Draw) -> LayerView:
    """A depthwise 3x3 of the kind the kernel takes: any size, padding and stride, channels in whole groups."""
    stride, channels = draw.choose(1, 2), 8 * draw.integer(1, 2)
    padding = [draw.integer(0, 2) for _ in range(4)]
    size = [max(draw.integer(1, 14), 3 - padding[i] - padding[i + 2]) for i in range(2)]
    out = tuple((size[i] + padding[i] + padding[i + 2] - 3) // stride + 1 for i in range(2))
    dtype, weight_zero_point = draw_layers.weight_type(draw)
    # 255 minus a zero point of 0 is not the sum of two int8: such a layer is another kernel's.
    weights = np.minimum(draw.array((1, 3, 3, channels), dtype), 127 if dtype == "int8" else 254)
    op = DepthwiseConv2D(
        **draw.clamped(),
        kernel=(3, 3),
        stride=(stride, stride),
        padding=tuple(padding),
        dilation=(1, 1),
        depth_multiplier=1,
        in_channels=channels,
        out_channels=channels,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
    )
    constants = draw.channel_constants(channels, 9) | {"weights": weights}
    batch = draw.integer(1, 2)
    x = draw_layers.image("x", (batch, *size, channels), draw.dtype, "NHWC")
    return draw_layers.view(op, [x], draw_layers.image("y", (batch, *out, channels), draw.dtype, "NHWC"), constants)


def same_shape_add(draw: Draw) -> LayerView:
    """ADD or SUB in the reference's scaling, one input's scale the larger one or both below it."""
    made = draw_layers.add(draw)
    shape = (draw.integer(1, 3), draw.integer(1, 30))
    op = made.op.model_copy(update={"shifts": draw.choose((0, -1), (-2, 0), (-3, -1), (0, 0)), "rounding": "double"})
    inputs = [draw_layers.image(name, shape, draw.dtype, "") for name in ("x0", "x1")]
    return draw_layers.view(op, inputs, draw_layers.image("y", shape, draw.dtype, ""))


def pool2d(draw: Draw) -> LayerView:
    """A pooling layer on whole registers of channels."""
    made = draw_layers.pool2d(draw, ("NHWC", "NHWC"))
    channels = 8 * draw.integer(1, 2)
    tensors = {
        name: tensor.model_copy(update={"shape": (*tensor.shape[:3], channels)})
        for name, tensor in made.tensors.items()
    }
    return LayerView(made.layer, tensors, made.arrays)


def awkward_shifts(draw: Draw, view: LayerView) -> LayerView:
    """The layer with shifts in some channels that the short requantization cannot take: dead, large, small."""
    arrays = dict(view.arrays)
    name = view.layer.constants["shift"]
    shifts = arrays[name].copy()
    chosen = draw.rng.random(shifts.shape) < 0.4
    shifts[chosen] = draw.rng.choice(np.array([-2, -13, -15, -20, -31], np.int32), int(chosen.sum()))
    arrays[name] = shifts
    bias = view.layer.constants["bias"]
    arrays[bias] = np.where(chosen, draw.rng.integers(-(1 << 26), 1 << 26, shifts.shape), arrays[bias]).astype(np.int32)
    return LayerView(view.layer, view.tensors, arrays)


def inputs_for(draw: Draw, view: LayerView) -> list[np.ndarray]:
    """Any values; one time in four only the extremes, which saturate most."""
    made = [draw.array(tensor.shape, tensor.dtype) for tensor in view.inputs]
    if draw.integer(0, 3) == 0:
        made = [np.where(x > np.median(x), np.iinfo(x.dtype).max, np.iinfo(x.dtype).min).astype(x.dtype) for x in made]
    return made


def cases(
    target_name: str, make: Callable[[Draw], LayerView], count: int, name: str, **options: Any
) -> list[SpikeCase]:
    """`count` layers of each data type."""
    target, known = load_target(target_name), kernels(["rvp"])
    made = []
    for seed in range(count):
        for dtype in ("int8", "uint8"):
            draw = Draw(seed, dtype)
            view = make(draw)
            kernel = next(kernel for kernel in known.values() if view.op.op in kernel.ops)
            assert kernel.why_not(view, target) == "", (name, seed, dtype)
            made.append(SpikeCase(f"{name} {seed} {dtype}", kernel, view, inputs_for(draw, view), **options))
    return made


def check(made: list[SpikeCase], target_name: str) -> None:
    wrong = [run for run in run_on_spike(made, load_target(target_name)) if run.differing]
    assert not wrong, wrong


@pytest.mark.parametrize("target", TARGETS)
def test_pointwise_rows_channels_and_depths_that_leave_every_remainder(target):
    """Rows 1 to 12 (panels of 5), channels 1 to 17 (blocks of 8 or 4), depths 1 to 41 (chunks of 4, 8 in a loop)."""

    def make(draw: Draw) -> LayerView:
        return conv2d(draw, size=(1, draw.seed % 12 + 1), depth=draw.seed * 7 % 41 + 1, units=draw.seed * 5 % 17 + 1)

    check(cases(target, make, 36, "pointwise"), target)


@pytest.mark.parametrize("target", TARGETS)
def test_windows_of_all_kinds(target):
    """Rows of 1 to 4 chunks and longer, aligned or not, dilated, and windows that leave the image on every side."""

    def make(draw: Draw) -> LayerView:
        kernel = (draw.integer(1, 4), draw.integer(1, 4))
        dilation = draw.choose((1, 1), (1, 1), (2, 1), (1, 2), (2, 2))
        padding = tuple(draw.integer(0, (kernel[i % 2] - 1) * dilation[i % 2]) for i in range(4))
        reach = [(kernel[i] - 1) * dilation[i] + 1 - padding[i] - padding[i + 2] for i in range(2)]
        size = tuple(max(draw.integer(1, 11), reach[i]) for i in range(2))
        window = {
            "kernel": kernel,
            "dilation": dilation,
            "padding": padding,
            "stride": draw.choose((1, 1), (2, 1), (3, 2)),
        }
        return conv2d(
            draw, size=size, depth=draw.choose(1, 2, 3, 4, 5, 8, 12, 16), units=draw.choose(3, 8, 16), **window
        )

    check(cases(target, make, 40, "windows"), target)


@pytest.mark.parametrize("target", TARGETS)
def test_fully_connected_rounds_once(target):
    def make(draw: Draw) -> LayerView:
        made = draw_layers.fully_connected(draw)
        assert isinstance(made.op, FullyConnected)
        return made

    check(cases(target, make, 30, "fully connected"), target)


@pytest.mark.parametrize("target", TARGETS)
def test_depthwise_borders_strides_and_remainders(target):
    check(cases(target, depthwise3x3, 40, "depthwise"), target)


@pytest.mark.parametrize("target", TARGETS)
def test_channels_that_need_the_wide_requantization(target):
    def make(draw: Draw) -> LayerView:
        if draw.seed % 2:
            return awkward_shifts(draw, depthwise3x3(draw))
        return awkward_shifts(draw, conv2d(draw, size=(3, 4), depth=draw.integer(1, 30), units=draw.choose(8, 16, 20)))

    check(cases(target, make, 24, "wide"), target)


@pytest.mark.parametrize("target", TARGETS)
def test_add_and_sub(target):
    check(cases(target, same_shape_add, 24, "add"), target)


@pytest.mark.parametrize("target", TARGETS)
def test_pooling(target):
    check(cases(target, pool2d, 24, "pool"), target)


def growing_averages(columns: int, dtype: str) -> LayerView:
    """32 rows of averages of 1, 2, ... `columns` elements: the first columns of a window lie left of the image."""
    op = Pool2D(
        op="avg_pool2d",
        kernel=(1, columns),
        stride=(1, 1),
        padding=(0, columns - 1, 0, 0),
        act_min=int(np.iinfo(dtype).min),
        act_max=int(np.iinfo(dtype).max),
        output_zero_point=0,
    )
    x, y = (draw_layers.image(name, (1, 32, columns, 8), dtype, "NHWC") for name in ("x", "y"))
    return draw_layers.view(op, [x], y)


@pytest.mark.parametrize("target", TARGETS)
def test_averages_of_every_count(target):
    """Up to the counts whose sums do not fit the short division; halves of both signs, extremes and any values."""
    made = []
    for dtype in ("int8", "uint8"):
        bounds, draw = np.iinfo(dtype), Draw(1, dtype)
        view = growing_averages(131, dtype)
        data = draw.array(view.inputs[0].shape)
        middle = (int(bounds.min) + int(bounds.max)) // 2
        for row in range(16):  # k and k + 1 in turn: the mean of an even count is a half
            data[0, row] = middle + row - 8 + np.arange(131)[:, None] % 2
        data[0, 16], data[0, 17] = bounds.min, bounds.max
        data[0, 18:24] = bounds.max - data[0, 18:24] % 3
        data[0, 24:28] = bounds.min + data[0, 24:28] % 3
        made.append(SpikeCase(f"averages {dtype}", kernels(["rvp"])["rvp.pool2d"], view, [data]))
    check(made, target)


@pytest.mark.parametrize("target", TARGETS)
def test_the_meaning_alone_without_the_micro_kernels(target):
    """The workloads that tensorize replaces compute the same as the kernels: with packed constants, in plain TIR."""
    makers = [
        ("depthwise", depthwise3x3),
        ("add", same_shape_add),
        ("pool", pool2d),
        ("fully connected", draw_layers.fully_connected),
        ("windows", lambda draw: conv2d(draw, size=(5, 4), depth=3, units=5, kernel=(3, 2), padding=(1, 1, 1, 0))),
        ("pointwise", lambda draw: conv2d(draw, size=(2, 3), depth=draw.integer(1, 9), units=9)),
    ]
    made = [case for name, make in makers for case in cases(target, make, 4, name, tensorized=False)]
    check(made, target)


def test_planar_output_is_written_through_a_stage():
    def make(draw: Draw) -> LayerView:
        made = conv2d(draw, size=(3, 4), depth=5, units=9)
        y = made.outputs[0].model_copy(update={"layout": "NCHW"})
        return LayerView(made.layer, {**made.tensors, "y": y}, made.arrays)

    check(cases("rv64-rvp", make, 3, "planar"), "rv64-rvp")
