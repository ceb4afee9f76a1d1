"""Drawn layers whose sizes cross every tail of the NEON kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from stages.graph import Add, Conv2D, DepthwiseConv2D, FullyConnected, LayerView, Pool2D
from tests.support.random_layers import Draw, image, multiplier, view, weight_type, window


def constants(draw: Draw, units: int, depth: int) -> dict[str, np.ndarray]:
    """Bias, multiplier and shift; in every third layer some channels are shifted left or not at all."""
    made = draw.channel_constants(units, depth)
    if draw.seed % 3 == 0:
        chosen = draw.rng.integers(0, 3, units) == 0
        made["shift"] = np.where(chosen, draw.rng.integers(0, 3, units), made["shift"]).astype(np.int32)
        made["multiplier"] = np.where(chosen, made["multiplier"] >> 14, made["multiplier"]).astype(np.int32)
    return made


def conv2d(draw: Draw, depth: int, units: int, *, pointwise: bool = False, **changed: Any) -> LayerView:
    """A window of any kind on `depth` channels."""
    fields, size, out = window(draw)
    if pointwise:
        size = out = (draw.integer(1, 6), draw.integer(1, 6))
        fields = {"kernel": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1)}
    dtype, weight_zero_point = weight_type(draw)
    layout = str(draw.choose("OHWI", "HWIO", "OIHW"))
    weights = draw.array((units, *fields["kernel"], depth), dtype)
    batch = draw.integer(1, 2)
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
    arrays = constants(draw, units, weights[0].size)
    arrays["weights"] = np.ascontiguousarray(weights.transpose(["OHWI".index(axis) for axis in layout]))
    x = image("x", (batch, *size, depth), draw.dtype, "NHWC")
    return view(op, [x], image("y", (batch, *out, units), draw.dtype, "NHWC"), arrays)


def fully_connected(draw: Draw, batch: int, depth: int, units: int) -> LayerView:
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
    arrays = constants(draw, units, depth) | {"weights": draw.array((units, depth), dtype)}
    x = image("x", (batch, depth), draw.dtype, "")
    return view(op, [x], image("y", (batch, units), draw.dtype, ""), arrays)


def depthwise(draw: Draw, channels: int, *, three: bool, stride: int = 0) -> LayerView:
    """A window of any kind; with `three`, what the kernels for 3x3 take, on images of any small size."""
    fields, size, out = window(draw)
    if three:
        stride = stride or draw.choose(1, 2)
        padding = tuple(draw.integer(0, 1) for _ in range(4))
        size = (draw.integer(3 - padding[0], 12), draw.integer(3 - padding[1], 12))
        fields = {"kernel": (3, 3), "stride": (stride, stride), "padding": padding, "dilation": (1, 1)}
        out = tuple((size[i] + padding[i] + padding[i + 2] - 3) // stride + 1 for i in range(2))
    dtype, weight_zero_point = weight_type(draw)
    weights = draw.array((1, *fields["kernel"], channels), dtype)
    if three:
        weights = (weights // 2 + (weight_zero_point + 1) // 2).astype(dtype)
    batch, layout = draw.integer(1, 2), str(draw.choose("HWC", "OIHW"))
    op = DepthwiseConv2D(
        **fields,
        **draw.clamped(),
        depth_multiplier=1,
        in_channels=channels,
        out_channels=channels,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        kernel_layout=layout,  # type: ignore[arg-type]
        rounding="double" if three else draw.choose("double", "single"),
    )
    arrays = draw.channel_constants(channels, 9) if three else constants(draw, channels, weights[0, ..., 0].size)
    arrays["weights"] = weights if layout == "HWC" else np.ascontiguousarray(weights.transpose(3, 0, 1, 2))
    x = image("x", (batch, *size, channels), draw.dtype, "NHWC")
    return view(op, [x], image("y", (batch, *out, channels), draw.dtype, "NHWC"), arrays)


def add(draw: Draw, count: int) -> LayerView:
    """As LiteRT prepares it: the input with the larger scale is halved, without a shift."""
    second, scale = multiplier(draw, -6, 0), multiplier(draw, -21, -18)
    scales = [(1 << 30, 0), second]
    if draw.integer(0, 1):
        scales.reverse()
    op = Add(
        op=draw.choose("add", "sub"),
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        left_shift=20,
        multipliers=(scales[0][0], scales[1][0]),
        shifts=(scales[0][1], scales[1][1]),
        output_multiplier=scale[0],
        output_shift=scale[1],
    )
    inputs = [image(name, (count,), draw.dtype, "") for name in ("x0", "x1")]
    return view(op, inputs, image("y", (count,), draw.dtype, ""))


def pool2d(draw: Draw, channels: int) -> LayerView:
    """Any window; in every fourth layer a row of more pixels than 16-bit sums hold."""
    fields, size, out = window(draw, dilated=False)
    if draw.seed % 4 == 0:
        size, out = (2, draw.integer(120, 300)), (1, 1)
        fields = {"kernel": size, "stride": (1, 1), "padding": (0, 0, 0, 0)}
    batch = draw.integer(1, 2)
    op = Pool2D(op=draw.choose("avg_pool2d", "avg_pool2d", "max_pool2d"), **fields, **draw.clamped())
    x = image("x", (batch, *size, channels), draw.dtype, "NHWC")
    return view(op, [x], image("y", (batch, *out, channels), draw.dtype, "NHWC"))
