"""The arm_dsp kernels on QEMU against the integer reference: shapes, layouts and zero points that cross every tail."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from stages.graph import Conv2D, DepthwiseConv2D, FullyConnected, LayerView, Pool2D
from stages.kernels.arm_dsp import convolution, depthwise
from stages.kernels.registry import kernels
from stages.targets.load import load_target
from tests.support import random_layers as draw_layers
from tests.support.random_layers import Draw
from tests.support.spike_layers import SpikeCase, run_on_spike

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("qemu-system-arm", "arm-none-eabi-gcc"))),
    reason="the Arm compiler and QEMU are not installed",
)

M4 = "cortex-m4"


def window_of(draw: Draw, size: tuple[int, int], fields: dict[str, Any]) -> tuple[int, int]:
    """Output size of a window; every window meets the image."""
    top, left, bottom, right = fields["padding"]
    padded = (size[0] + top + bottom, size[1] + left + right)
    spans = [padded[i] - (fields["kernel"][i] - 1) * fields["dilation"][i] - 1 for i in range(2)]
    return spans[0] // fields["stride"][0] + 1, spans[1] // fields["stride"][1] + 1


def conv2d(
    draw: Draw, *, size: tuple[int, int], depth: int, units: int, layouts: tuple[str, str], **window: Any
) -> LayerView:
    """A convolution with one group; int8 weights from -127, as the converter writes them, in two layers of three."""
    fields = {"kernel": (1, 1), "stride": (1, 1), "dilation": (1, 1), "padding": (0, 0, 0, 0)} | window
    out = window_of(draw, size, fields)
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
    if draw.seed % 3:
        weights = np.maximum(weights, -127 if dtype == "int8" else 1).astype(dtype)
    constants = draw.channel_constants(units, weights[0].size) | {"weights": weights}
    batch = draw.choose(1, 1, 2)
    x = draw_layers.image("x", (batch, *size, depth), draw.dtype, layouts[0])
    y = draw_layers.image("y", (batch, *out, units), draw.dtype, layouts[1])
    return draw_layers.view(op, [x], y, constants)


def depthwise3x3(draw: Draw) -> LayerView:
    """A depthwise 3x3 of the kind the kernel takes: any size, padding, stride, layout and multiplier."""
    stride, channels, multiplier = draw.choose(1, 2), draw.integer(1, 4), draw.choose(1, 1, 1, 2)
    padding = tuple(draw.integer(0, 2) for _ in range(4))
    size = [max(draw.integer(1, 14), 3 - padding[i] - padding[i + 2]) for i in range(2)]
    fields = {"kernel": (3, 3), "stride": (stride, stride), "dilation": (1, 1), "padding": padding}
    out = window_of(draw, (size[0], size[1]), fields)
    count = channels * multiplier
    dtype = draw.dtype
    weights = draw.array((1, 3, 3, count), dtype)
    # With another zero point than 128 weights less it do not fit int8.
    weight_zero_point = draw.choose(128, 128, 0, 90, 255) if dtype == "uint8" else 0
    op = DepthwiseConv2D(
        **fields,
        **draw.clamped(),
        depth_multiplier=multiplier,
        in_channels=channels,
        out_channels=count,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
    )
    constants = draw.channel_constants(count, 9) | {"weights": weights}
    batch = draw.integer(1, 2)
    x = draw_layers.image("x", (batch, *size, channels), dtype, draw.layout())
    return draw_layers.view(op, [x], draw_layers.image("y", (batch, *out, count), dtype, draw.layout()), constants)


def depthwise_of_any_kind(draw: Draw) -> LayerView:
    """Windows of 1 to 5 rows and 1 to 9 columns, strides 1 to 3, weights with any zero point."""
    kernel = (draw.integer(1, 5), draw.integer(1, 9))
    fields = {
        "kernel": kernel,
        "stride": (draw.integer(1, 3), draw.integer(1, 3)),
        "dilation": (draw.choose(1, 1, 2), 1),
        "padding": tuple(draw.integer(0, kernel[i % 2] - 1) for i in range(4)),
    }
    reach = ((kernel[0] - 1) * fields["dilation"][0] + 1, kernel[1])
    size = tuple(max(draw.integer(1, 12), reach[i] - fields["padding"][i] - fields["padding"][i + 2]) for i in range(2))
    channels, multiplier = draw.integer(1, 3), draw.choose(1, 1, 2)
    count, (dtype, weight_zero_point) = channels * multiplier, draw_layers.weight_type(draw)
    op = DepthwiseConv2D(
        **fields,
        **draw.clamped(),
        depth_multiplier=multiplier,
        in_channels=channels,
        out_channels=count,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
    )
    weights = draw.array((1, *kernel, count), dtype)
    constants = draw.channel_constants(count, kernel[0] * kernel[1]) | {"weights": weights}
    x = draw_layers.image("x", (draw.integer(1, 2), *size, channels), draw.dtype, draw.layout())
    y = draw_layers.image("y", (x.shape[0], *window_of(draw, size, fields), count), draw.dtype, draw.layout())
    return draw_layers.view(op, [x], y, constants)


def same_shape_add(draw: Draw) -> LayerView:
    """ADD in the reference's scaling: one input with the multiplier 1/2; SUB where it is the first."""
    made = draw_layers.add(draw)
    shape = (draw.integer(1, 3), draw.integer(1, 30))
    first = made.op.op == "sub" or draw.integer(0, 1) == 0
    multiplier, shift = int(draw.rng.integers(1 << 30, 1 << 31)), -draw.integer(0, 9)
    op = made.op.model_copy(
        update={
            "left_shift": 20,
            "multipliers": (1 << 30, multiplier) if first else (multiplier, 1 << 30),
            "shifts": (0, shift) if first else (shift, 0),
            "output_shift": -draw.integer(16, 20),
            "rounding": "double",
        }
    )
    inputs = [draw_layers.image(name, shape, draw.dtype, "") for name in ("x0", "x1")]
    return draw_layers.view(op, inputs, draw_layers.image("y", shape, draw.dtype, ""))


def average(draw: Draw) -> LayerView:
    size, layout = (draw.integer(1, 9), draw.integer(1, 9)), draw.layout()
    channels = draw.integer(1, 6) if layout == "NCHW" else 4 * draw.integer(1, 3)
    op = Pool2D(op="avg_pool2d", kernel=size, stride=size, padding=(0, 0, 0, 0), **draw.clamped())
    batch = draw.integer(1, 2)
    x = draw_layers.image("x", (batch, *size, channels), draw.dtype, layout)
    return draw_layers.view(op, [x], draw_layers.image("y", (batch, 1, 1, channels), draw.dtype, draw.layout()))


def dead_channels(draw: Draw, view: LayerView) -> LayerView:
    """The layer with channels as training leaves them when they die: a tiny scale, a bias of any size."""
    arrays = dict(view.arrays)
    shift, bias = view.layer.constants["shift"], view.layer.constants["bias"]
    chosen = draw.rng.random(arrays[shift].shape) < 0.4
    arrays[shift] = np.where(chosen, -31, arrays[shift]).astype(np.int32)
    arrays[bias] = np.where(chosen, draw.rng.integers(-(1 << 29), 1 << 29, chosen.shape), arrays[bias]).astype(np.int32)
    return LayerView(view.layer, view.tensors, arrays)


def long_shifts(draw: Draw, view: LayerView) -> LayerView:
    """The layer with shifts of which the first has no short rounding; the others lie anywhere from -24 to 5.

    Biases spread the results over the output's range. Weights are small where the accumulator is not shifted down.
    """
    arrays, names = dict(view.arrays), view.layer.constants
    weights = arrays[names["weights"]]
    axis = 0 if view.op.op == "conv2d" else weights.ndim - 1
    shift = draw.rng.integers(-draw.choose(12, 18, 24), 6, weights.shape[axis])
    shift[0] = draw.choose(-16, -15, -14, -1, 0, 1, 3)
    reach = np.where(shift < -12, 1 << np.maximum(7 - shift, 0), 1 << np.maximum(6 - shift, 0))
    reach[0] = max(reach[0], 1 << 20) if shift[0] < -12 else reach[0]
    centred = weights.astype(np.int64) - view.op.weight_zero_point
    small = np.where(shift < -6, centred.swapaxes(axis, -1), centred.swapaxes(axis, -1) // 40).swapaxes(axis, -1)
    arrays[names["weights"]] = (small + view.op.weight_zero_point).astype(weights.dtype)
    arrays[names["shift"]] = shift.astype(np.int32)
    arrays[names["bias"]] = draw.rng.integers(-reach, reach + 1).astype(np.int32)
    arrays[names["bias"]][0] = reach[0] // 2
    return LayerView(view.layer, view.tensors, arrays)


def is_long(view: LayerView) -> bool:
    """Whether the layer is requantized by the long rounding."""
    kernel = convolution if view.op.op == "conv2d" else depthwise
    return kernel.layer_arithmetic(view).scale.long


def inputs_for(draw: Draw, view: LayerView) -> list[np.ndarray]:
    """Any values; one time in four only the extremes, which saturate most."""
    made = [draw.array(tensor.shape, tensor.dtype) for tensor in view.inputs]
    if draw.integer(0, 3) == 0:
        made = [np.where(x > np.median(x), np.iinfo(x.dtype).max, np.iinfo(x.dtype).min).astype(x.dtype) for x in made]
    return made


def cases(
    make: Callable[[Draw], LayerView], count: int, target: str = M4, kernel: str = "", **options: Any
) -> list[SpikeCase]:
    """`count` layers of each data type, by the kernel of that name or the first for the operator."""
    made, known = [], kernels(["arm_dsp"])
    for seed in range(count):
        for dtype in ("int8", "uint8"):
            draw = Draw(seed, dtype)
            view = make(draw)
            chosen = known[kernel] if kernel else next(k for k in known.values() if view.op.op in k.ops)
            assert chosen.why_not(view, load_target(target)) == "", (seed, dtype)
            offered = chosen.candidates(view, load_target(target))
            params = offered[seed // 2 % len(offered)]
            name = f"{seed} {dtype} {params}"
            made.append(SpikeCase(name, chosen, view, inputs_for(draw, view), params=params, **options))
    return made


def check(made: list[SpikeCase], target: str = M4) -> None:
    wrong = [run for run in run_on_spike(made, load_target(target)) if run.differing]
    assert not wrong, wrong


def pointwise(draw: Draw) -> LayerView:
    """Pixels 1 to 9 (panels of 4), channels 2 to 12 (pairs), depths 1 to 41 (steps of 2, fours, 8 steps in a loop)."""
    layouts = [("NHWC", "NHWC"), ("NCHW", "NCHW"), ("NHWC", "NCHW"), ("NCHW", "NHWC")][draw.seed % 4]
    return conv2d(
        draw,
        size=(1, draw.seed % 9 + 1),
        depth=draw.seed * 7 % 41 + 1,
        units=draw.seed * 5 % 11 + 2,
        layouts=layouts,
    )


def windows(draw: Draw) -> LayerView:
    """Runs of every remainder, dilated or not, and windows that leave the image on every side."""
    kernel = (draw.integer(1, 4), draw.integer(1, 4))
    dilation = draw.choose((1, 1), (1, 1), (2, 1), (1, 2), (2, 2))
    padding = tuple(draw.integer(0, (kernel[i % 2] - 1) * dilation[i % 2]) for i in range(4))
    reach = [(kernel[i] - 1) * dilation[i] + 1 - padding[i] - padding[i + 2] for i in range(2)]
    size = tuple(max(draw.integer(1, 11), reach[i]) for i in range(2))
    fields = {"kernel": kernel, "dilation": dilation, "padding": padding, "stride": draw.choose((1, 1), (2, 1), (3, 2))}
    depth, units = draw.choose(1, 2, 3, 4, 5, 8, 12, 16), draw.choose(2, 3, 8)
    return conv2d(draw, size=size, depth=depth, units=units, layouts=("NHWC", draw.layout()), **fields)


def test_pointwise_pixels_channels_depths_and_layouts_that_leave_every_remainder():
    check(cases(pointwise, 33))


def test_windows_of_all_kinds():
    check(cases(windows, 24))


def test_fully_connected_of_every_remainder():
    """Depths 1 to 40 (fours by twos), units 2 to 13 (blocks of 6, then of 4 or 2), both roundings, both packings."""
    check(cases(draw_layers.fully_connected, 36))


def test_long_rows_with_every_number_of_units_left_over():
    """Depths that go round the unrolled loops, whose entries depend on the number of pairs; weights from -127."""

    def make(draw: Draw) -> LayerView:
        units, depth = draw.seed % 8 + 1, 4 * draw.integer(14, 40) - draw.choose(0, 0, 1)
        op = FullyConnected(
            batch=1,
            depth=depth,
            units=units,
            input_zero_point=draw.zero_point(),
            weight_zero_point=0 if draw.dtype == "int8" else draw.choose(128, 128, 100),
            rounding="single",
            **draw.clamped(),
        )
        weights = np.maximum(draw.array((units, depth), draw.dtype), -127 if draw.dtype == "int8" else 1)
        constants = draw.channel_constants(units, depth) | {"weights": weights}
        x = draw_layers.image("x", (1, depth), draw.dtype, "")
        return draw_layers.view(op, [x], draw_layers.image("y", (1, units), draw.dtype, ""), constants)

    check(cases(make, 24))


def test_depthwise_borders_strides_layouts_and_remainders():
    made = cases(depthwise3x3, 48)
    assert {(depthwise.is_wide(case.view), case.view.op.stride[0]) for case in made} == set(product((0, 1), (1, 2)))
    check(made)


def test_depthwise_of_any_kind():
    check(cases(depthwise_of_any_kind, 24, kernel="arm_dsp.depthwise_s8"))


def test_add_and_sub():
    check(cases(same_shape_add, 16))


def test_averages():
    check(cases(average, 12))


def test_dead_channels_give_the_zero_point():
    def make(draw: Draw) -> LayerView:
        return dead_channels(draw, depthwise3x3(draw) if draw.seed % 2 else pointwise(draw))

    check(cases(make, 16))


@pytest.mark.parametrize(("make", "kernel", "count"), [
    (pointwise, "arm_dsp.gemm_s8", 33),
    (windows, "arm_dsp.gemm_s8", 12),
    (depthwise3x3, "arm_dsp.depthwise3x3_s8", 40),
    (depthwise_of_any_kind, "arm_dsp.depthwise_s8", 24),
])  # fmt: skip
@pytest.mark.parametrize("tensorized", [True, False])
def test_shifts_that_have_no_short_rounding(make, kernel, count, tensorized):
    def long(draw: Draw) -> LayerView:
        return long_shifts(draw, make(draw))

    made = cases(long, count if tensorized else 4, kernel=kernel, tensorized=tensorized)
    assert all(is_long(case.view) for case in made)
    check(made)


ALL = [pointwise, windows, depthwise3x3, draw_layers.fully_connected, same_shape_add, average]


@pytest.mark.parametrize("make", ALL)
def test_the_workload_alone_means_the_same(make):
    """The TIR without its micro-kernels: constants are packed as the meaning reads them."""
    check(cases(make, 6, tensorized=False))


def test_the_workload_of_any_depthwise_alone_means_the_same():
    check(cases(depthwise_of_any_kind, 6, kernel="arm_dsp.depthwise_s8", tensorized=False))


@pytest.mark.parametrize("target", ["cortex-m7", "cortex-m33"])
def test_other_cores(target):
    made = [case for make in (pointwise, windows, depthwise3x3) for case in cases(make, 4, target)]
    check(made, target)


@pytest.mark.parametrize("make", [pointwise, windows, depthwise3x3, depthwise_of_any_kind, draw_layers.fully_connected])
def test_a_scale_that_cannot_be_rounded_is_a_reason_and_no_error(make):
    view = make(Draw(1))
    arrays = dict(view.arrays)
    name = view.layer.constants["shift"]
    arrays[name] = np.full_like(arrays[name], 30)
    refused = LayerView(view.layer, view.tensors, arrays)
    able = [kernel for kernel in kernels(["arm_dsp"]).values() if view.op.op in kernel.ops]
    reasons = [kernel.why_not(refused, load_target(M4)) for kernel in able]
    assert reasons and all("channel 0 has shift 30" in reason or "rounds once" in reason for reason in reasons)
