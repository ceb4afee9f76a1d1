"""Element by element: ADD, SUB, MUL, tables, QUANTIZE and DEQUANTIZE. All arrays in logical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stages.arithmetic.fixed_point import Array, multiply_by_quantized_multiplier, round_half_away

if TYPE_CHECKING:
    from stages.graph import LayerView


def add(view: LayerView, a: Array, b: Array) -> Array:
    """ADD or SUB with broadcasting: both operands on a common scale, then one requantization."""
    op = view.op
    first, second = (
        multiply_by_quantized_multiplier((x.astype(np.int64) - zero) << op.left_shift, multiplier, shift, op.rounding)
        for x, zero, multiplier, shift in zip((a, b), op.zero_points, op.multipliers, op.shifts, strict=True)
    )
    total = first + second if op.op == "add" else first - second
    scaled = multiply_by_quantized_multiplier(total, op.output_multiplier, op.output_shift, op.rounding)
    return op.clamped(view, scaled)


def mul(view: LayerView, a: Array, b: Array) -> Array:
    """MUL with broadcasting."""
    op = view.op
    product = (a.astype(np.int64) - op.zero_points[0]) * (b.astype(np.int64) - op.zero_points[1])
    return op.clamped(
        view, multiply_by_quantized_multiplier(product, op.output_multiplier, op.output_shift, op.rounding)
    )


def activation(view: LayerView, x: Array) -> Array:
    """A table look-up; entry 0 belongs to the lowest value of x's type."""
    return view.constant("table")[x.astype(np.int64) - int(np.iinfo(x.dtype).min)]


def requantize(view: LayerView, x: Array) -> Array:
    """QUANTIZE of an 8-bit tensor."""
    op = view.op
    return op.clamped(
        view,
        multiply_by_quantized_multiplier(
            x.astype(np.int64) - op.input_zero_point, op.multiplier, op.shift, op.rounding
        ),
    )


def quantize(view: LayerView, x: Array) -> Array:
    """QUANTIZE of a float32 tensor: a float32 division, halves away from zero."""
    # Beyond the clamp in any case, and inside int64.
    ratio = np.clip(x.astype(np.float32) / np.float32(view.op.scale), np.float32(-1e9), np.float32(1e9))
    return view.op.clamped(view, round_half_away(ratio).astype(np.int64))


def dequantize(view: LayerView, x: Array) -> Array:
    """DEQUANTIZE: exact in float32 but for the rounding of one product."""
    return (x.astype(np.int32) - view.op.input_zero_point).astype(np.float32) * np.float32(view.op.scale)
