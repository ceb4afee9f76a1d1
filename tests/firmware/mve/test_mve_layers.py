"""The MVE kernels on QEMU against the integer reference, over shapes, zero points and shifts that cross every tail."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stages.graph import Add, Conv2D, DepthwiseConv2D, FullyConnected, LayerView, Pool2D
from stages.kernels.registry import kernels
from stages.targets.load import load_target
from tests.support.random_layers import Draw, image, view, weight_type
from tests.support.spike_layers import SpikeCase, run_on_spike

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("qemu-system-arm", "arm-none-eabi-gcc"))),
    reason="the Arm compiler and QEMU are not installed",
)

M55 = "cortex-m55"


def out_size(size: tuple[int, int], fields: dict[str, Any]) -> tuple[int, int]:
    """Output height and width of a window."""
    top, left, bottom, right = fields["padding"]
    padded = (size[0] + top + bottom, size[1] + left + right)
    spans = [padded[i] - (fields["kernel"][i] - 1) * fields["dilation"][i] - 1 for i in range(2)]
    return spans[0] // fields["stride"][0] + 1, spans[1] // fields["stride"][1] + 1


def any_window(draw: Draw) -> tuple[dict[str, Any], tuple[int, int]]:
    """A window that leaves the image on any side, dilated or not, and the size of an image."""
    kernel = (draw.integer(1, 4), draw.integer(1, 4))
    dilation = draw.choose((1, 1), (1, 1), (2, 1), (1, 2), (2, 2))
    padding = tuple(draw.integer(0, (kernel[i % 2] - 1) * dilation[i % 2]) for i in range(4))
    reach = [(kernel[i] - 1) * dilation[i] + 1 - padding[i] - padding[i + 2] for i in range(2)]
    size = (max(draw.integer(1, 11), reach[0]), max(draw.integer(1, 11), reach[1]))
    stride = draw.choose((1, 1), (2, 1), (3, 2))
    return {"kernel": kernel, "dilation": dilation, "padding": padding, "stride": stride}, size


def channel_constants(draw: Draw, units: int, depth: int) -> dict[str, np.ndarray]:
    """In every fourth layer channels as training leaves them when they die, in another fourth shifts of any size."""
    made = draw.channel_constants(units, depth)
    chosen = draw.rng.random(units) < 0.4
    if draw.seed % 4 == 1:
        made["shift"] = np.where(chosen, -31, made["shift"]).astype(np.int32)
        made["bias"] = np.where(chosen, draw.rng.integers(-(1 << 29), 1 << 29, units), made["bias"]).astype(np.int32)
    if draw.seed % 4 == 2:
        made["shift"] = draw.rng.integers(-16, 0, units).astype(np.int32)
        made["bias"] = np.where(chosen, draw.rng.integers(-(1 << 24), 1 << 24, units), made["bias"]).astype(np.int32)
    return made


def conv2d(draw: Draw, size: tuple[int, int], depth: int, units: int, **window: Any) -> LayerView:
    fields = {"kernel": (1, 1), "stride": (1, 1), "dilation": (1, 1), "padding": (0, 0, 0, 0)} | window
    dtype, weight_zero_point = weight_type(draw)
    layout = str(draw.choose("OHWI", "HWIO", "OIHW"))
    op = Conv2D(
        **fields,
        **draw.clamped(),
        in_channels=depth,
        out_channels=units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        kernel_layout=layout,  # type: ignore[arg-type]
        rounding=draw.choose("double", "double", "single"),
    )
    weights = draw.array((units, *fields["kernel"], depth), dtype)
    arrays = channel_constants(draw, units, weights[0].size)
    arrays["weights"] = np.ascontiguousarray(weights.transpose(["OHWI".index(axis) for axis in layout]))
    batch = draw.integer(1, 2)
    x = image("x", (batch, *size, depth), draw.dtype, "NHWC")
    return view(op, [x], image("y", (batch, *out_size(size, fields), units), draw.dtype, "NHWC"), arrays)


def pointwise(draw: Draw) -> LayerView:
    """1 to 9 pixels (pairs), 4 to 14 channels (fours), depths 1 to 57 (chunks of 16)."""
    return conv2d(draw, (1, draw.seed % 9 + 1), draw.seed * 7 % 57 + 1, draw.seed * 5 % 11 + 4)


def windows(draw: Draw) -> LayerView:
    fields, size = any_window(draw)
    return conv2d(draw, size, draw.choose(1, 2, 3, 5, 8, 16, 20), draw.choose(4, 7, 8), **fields)


def large_windows(draw: Draw) -> LayerView:
    """So deep that two rows are more than the usual scratch, and a single row is left over."""
    fields = {"kernel": (3, 3), "padding": (1, 1, 1, 1)}
    return conv2d(draw, (3, 3), 70, 5, **fields)


def fully_connected(draw: Draw) -> LayerView:
    batch, depth, units = draw.seed % 4 + 1, draw.seed * 11 % 70 + 1, draw.seed * 3 % 10 + 4
    dtype, weight_zero_point = weight_type(draw)
    op = FullyConnected(
        **draw.clamped(),
        batch=batch,
        depth=depth,
        units=units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        rounding=draw.choose("single", "single", "double"),
    )
    arrays = channel_constants(draw, units, depth) | {"weights": draw.array((units, depth), dtype)}
    x = image("x", (batch, depth), draw.dtype, "")
    return view(op, [x], image("y", (batch, units), draw.dtype, ""), arrays)


def depthwise(
    draw: Draw, size: tuple[int, int], channels: int, weights: np.ndarray, *, three: bool, **fields: Any
) -> LayerView:
    """Weights of `weights`; in every third uint8 layer so far from their zero point that they do not fit int8."""
    dtype, layout = draw.dtype, str(draw.choose("HWC", "OIHW"))
    weight_zero_point = 128 if dtype == "uint8" else 0
    wide = draw.choose(3, 1, 250) if dtype == "uint8" and draw.seed % 3 == 0 and not three else weight_zero_point
    op = DepthwiseConv2D(
        **fields,
        **draw.clamped(),
        depth_multiplier=1,
        in_channels=channels,
        out_channels=channels,
        input_zero_point=draw.zero_point(),
        weight_zero_point=wide,
        kernel_layout=layout,  # type: ignore[arg-type]
    )
    weights = (weights.astype(np.int16) + weight_zero_point).astype(dtype)
    arrays = channel_constants(draw, channels, weights[..., 0].size)
    arrays["weights"] = weights if layout == "HWC" else np.ascontiguousarray(weights.transpose(3, 0, 1, 2))
    batch = draw.integer(1, 2)
    x = image("x", (batch, *size, channels), dtype, "NHWC")
    return view(op, [x], image("y", (batch, *out_size(size, fields), channels), dtype, "NHWC"), arrays)


def depthwise3x3(draw: Draw) -> LayerView:
    """Strides 1 and 2, any padding; 1 to 37 channels (groups of 16); weights whose pairs just fit int16."""
    padding = tuple(draw.integer(0, 2) for _ in range(4))
    size = [max(draw.integer(1, 12), 3 - padding[i] - padding[i + 2]) for i in range(2)]
    stride = (draw.integer(1, 4), draw.choose(1, 2))
    fields = {"kernel": (3, 3), "stride": stride, "dilation": (1, 1), "padding": padding}
    channels = draw.seed * 7 % 37 + 1
    weights = np.maximum(draw.array((1, 3, 3, channels), "int8"), -127)
    if draw.seed % 2:
        weights = np.where(weights < 0, -127, 127)
    return depthwise(draw, (size[0], size[1]), channels, weights, three=True, **fields)


def depthwise_any(draw: Draw) -> LayerView:
    fields, size = any_window(draw)
    channels = draw.seed * 7 % 37 + 1
    weights = draw.array((1, *fields["kernel"], channels), "int8")
    weights.reshape(-1)[:2] = -128  # what the 3x3 kernel does not take
    return depthwise(draw, size, channels, weights, three=False, **fields)


def add(draw: Draw) -> LayerView:
    """ADD in the reference's scaling: one input (sub: the first) with the multiplier 1/2, in some layers both."""
    kind = draw.choose("add", "add", "sub")
    shape = (draw.integer(1, 3), draw.seed % 30 + 1)
    half = (1 << 30, 0)
    other = draw.choose(half, *[(int(draw.rng.integers(1 << 30, 1 << 31)), -draw.integer(1, 9)) for _ in range(3)])
    scales = (half, other) if kind == "sub" or draw.integer(0, 1) else (other, half)
    op = Add(
        op=kind,
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        left_shift=20,
        multipliers=(scales[0][0], scales[1][0]),
        shifts=(scales[0][1], scales[1][1]),
        output_multiplier=int(draw.rng.integers(1 << 30, 1 << 31)),
        output_shift=-draw.integer(16, 20),
    )
    inputs = [image(name, shape, draw.dtype, "") for name in ("x0", "x1")]
    return view(op, inputs, image("y", shape, draw.dtype, ""))


def pool(draw: Draw) -> LayerView:
    """Windows that leave the image on any side, and in every third layer all of an image."""
    kernel = (draw.integer(1, 4), draw.integer(1, 4))
    size = (draw.integer(kernel[0], 9), draw.integer(kernel[1], 9))
    padding = tuple(draw.integer(0, kernel[i % 2] - 1) for i in range(4))
    if draw.seed % 3 == 0:
        size = (draw.choose(16, 17, 3), 15)
        kernel, padding = size, (0, 0, 0, 0)
    fields = {"kernel": kernel, "stride": draw.choose((1, 1), (2, 1), (3, 2)), "padding": padding}
    op = Pool2D(op=draw.choose("avg_pool2d", "max_pool2d"), **fields, **draw.clamped())
    batch, channels = draw.integer(1, 2), draw.seed * 7 % 37 + 1
    out = out_size(size, fields | {"dilation": (1, 1)})
    x = image("x", (batch, *size, channels), draw.dtype, "NHWC")
    return view(op, [x], image("y", (batch, *out, channels), draw.dtype, "NHWC"))


def inputs_for(draw: Draw, layer: LayerView) -> list[np.ndarray]:
    """Any values; one time in four only the extremes, which saturate most."""
    made = [draw.array(tensor.shape, tensor.dtype) for tensor in layer.inputs]
    if draw.integer(0, 3) == 0:
        made = [np.where(x > np.median(x), np.iinfo(x.dtype).max, np.iinfo(x.dtype).min).astype(x.dtype) for x in made]
    return made


def cases(make: Callable[[Draw], LayerView], count: int, **options: Any) -> list[SpikeCase]:
    """`count` layers of each data type, with the first kernel that takes them."""
    made, target = [], load_target(M55)
    for seed in range(count):
        for dtype in ("int8", "uint8"):
            draw = Draw(seed, dtype)
            layer = make(draw)
            able = [k for k in kernels(["mve"]).values() if layer.op.op in k.ops and not k.why_not(layer, target)]
            assert able, (seed, dtype)
            made.append(SpikeCase(f"{seed} {dtype}", able[0], layer, inputs_for(draw, layer), **options))
    return made


def check(made: list[SpikeCase]) -> None:
    wrong = [run for run in run_on_spike(made, load_target(M55)) if run.differing]
    assert not wrong, wrong


def test_pointwise_pixels_channels_and_depths_that_leave_every_remainder():
    check(cases(pointwise, 33))


def test_windows_of_all_kinds():
    check(cases(windows, 24) + cases(large_windows, 2))


def test_fully_connected_of_every_remainder():
    check(cases(fully_connected, 24))


def test_depthwise_3x3_borders_strides_and_groups():
    check(cases(depthwise3x3, 32))


def test_depthwise_of_any_window():
    check(cases(depthwise_any, 24))


def test_add_and_sub():
    check(cases(add, 30))


def test_pooling():
    check(cases(pool, 24))


@pytest.mark.parametrize("make", [pointwise, windows, fully_connected, depthwise3x3, depthwise_any, add, pool])
def test_the_workload_alone_means_the_same(make):
    """The TIR without its micro-kernels: constants are packed as the meaning reads them."""
    check(cases(make, 6, tensorized=False))
