"""Sliding windows: convolution, depthwise convolution, fully connected, pooling. All arrays in logical order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stages.arithmetic.fixed_point import Array, by_steps, multiply_by_quantized_multiplier, wrap
from stages.arithmetic.sliding import tapped

if TYPE_CHECKING:
    from stages.graph import LayerView


def conv2d(view: LayerView, x: Array) -> Array:
    """CONV_2D: y NHWO from x NHWC, as a matrix product over gathered windows, exact in float64 (|sum| < 2^53)."""
    op = view.op
    weights = ohwi(view.constant("weights"), op.kernel_layout).astype(np.int64) - op.weight_zero_point
    windows = np.stack(_tapped(_padded(x, op, op.input_zero_point) - op.input_zero_point, view), axis=3)
    n, height, width = windows.shape[:3]
    depth, units = op.in_channels // op.groups, op.out_channels // op.groups
    accumulators = []
    for group in range(op.groups):
        columns = windows[..., group * depth : (group + 1) * depth].reshape(n * height * width, -1)
        rows = weights[group * units : (group + 1) * units].reshape(units, -1)
        accumulators.append(columns.astype(np.float64) @ rows.astype(np.float64).T)
    total = np.concatenate(accumulators, axis=1).reshape(n, height, width, -1).astype(np.int64)
    return requantize(view, total)


def depthwise_conv2d(view: LayerView, x: Array) -> Array:
    """DEPTHWISE_CONV_2D: y NHWC', where output channel c * depth_multiplier + m reads input channel c."""
    op = view.op
    weights = hwc(view.constant("weights"), op.kernel_layout).astype(np.int64) - op.weight_zero_point
    image = np.repeat(_padded(x, op, op.input_zero_point) - op.input_zero_point, op.depth_multiplier, axis=3)
    total = np.zeros(view.outputs[0].shape, dtype=np.int64)
    for tap, factors in zip(_tapped(image, view), weights.reshape(-1, op.out_channels), strict=True):
        total += tap * factors
    return requantize(view, total)


def fully_connected(view: LayerView, x: Array) -> Array:
    """FULLY_CONNECTED: rows of `depth` elements times weights (units, depth), in the output's shape."""
    op = view.op
    rows = x.reshape(op.batch, op.depth).astype(np.float64) - op.input_zero_point
    weights = view.constant("weights").astype(np.float64) - op.weight_zero_point
    return requantize(view, (rows @ weights.T).astype(np.int64)).reshape(view.outputs[0].shape)


def avg_pool2d(view: LayerView, x: Array) -> Array:
    """AVERAGE_POOL_2D: the mean of the elements inside the image, halves away from zero."""
    op = view.op
    total, count = (np.sum(_tapped(_padded(part, op, 0), view), axis=0) for part in (x, np.ones_like(x)))
    mean = np.where(total > 0, (total + count // 2) // count, -((-total + count // 2) // count))
    return np.clip(mean, op.act_min, op.act_max).astype(x.dtype)


def max_pool2d(view: LayerView, x: Array) -> Array:
    """MAX_POOL_2D: the maximum of the elements inside the image."""
    op = view.op
    largest = np.max(_tapped(_padded(x, op, int(np.iinfo(x.dtype).min)), view), axis=0)
    return np.clip(largest, op.act_min, op.act_max).astype(x.dtype)


def requantize(view: LayerView, total: Array) -> Array:
    """Bias, per-channel multiplier and shift (last axis), zero point and clamp on int32 accumulators."""
    op = view.op
    if view.has("bias"):
        total = total + view.constant("bias").astype(np.int64)
    if op.rounding == "steps":
        return op.clamped(view, _stepped(wrap(total), view.constant("steps"), view.constant("step_rows")))
    scaled = multiply_by_quantized_multiplier(
        wrap(total), view.constant("multiplier"), view.constant("shift"), op.rounding
    )
    return op.clamped(view, scaled)


def _stepped(total: Array, steps: Array, rows: Array) -> Array:
    """`by_steps` of each channel (last axis), with the row of steps that is its own."""
    return np.stack([by_steps(total[..., channel], steps[row]) for channel, row in enumerate(rows)], axis=-1)


def ohwi(weights: Array, layout: str) -> Array:
    """Convolution weights as (out, height, width, in per group), whatever the layout they are kept in."""
    return weights.transpose([layout.index(axis) for axis in "OHWI"])


def hwc(weights: Array, layout: str) -> Array:
    """Depthwise weights as (height, width, channels); HWC has a leading axis of 1, OIHW is (C, 1, height, width)."""
    return weights[0] if layout == "HWC" else weights[:, 0].transpose(1, 2, 0)


def _padded(x: Array, op: Any, value: int) -> Array:
    """x (NHWC) as int64 with op.padding filled with `value`."""
    top, left, bottom, right = op.padding
    return np.pad(x.astype(np.int64), ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)


def _tapped(image: Array, view: LayerView) -> list[Array]:
    """For each tap of the layer's window the elements of the padded image that it meets, (N, height, width, C)."""
    op, (_, height, width, _) = view.op, view.outputs[0].shape
    return tapped(image, op.kernel, op.stride, getattr(op, "dilation", (1, 1)), (height, width))
