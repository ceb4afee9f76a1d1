"""MEAN, SOFTMAX and L2_NORMALIZATION. All arrays in logical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stages.arithmetic.fixed_point import (
    Array,
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
    saturate,
    saturating_rounding_doubling_high_mul,
    wrap,
)

if TYPE_CHECKING:
    from stages.graph import LayerView


def mean(view: LayerView, x: Array) -> Array:
    """MEAN: the sum over the axes, less the zero points, times a multiplier that holds scales and count."""
    op = view.op
    total = x.astype(np.int64).sum(axis=op.axes) - op.input_zero_point * op.count
    scaled = multiply_by_quantized_multiplier(total, op.multiplier, op.shift, op.rounding)
    return op.clamped(view, scaled).reshape(view.outputs[0].shape)


def softmax(view: LayerView, x: Array) -> Array:
    """SOFTMAX over the last axis; the formula is in stages.operators.rows.Softmax."""
    limits = np.iinfo(x.dtype)
    values = x.astype(np.int64)
    powers = view.constant("exp").astype(np.int64)[values.max(axis=-1, keepdims=True) - values]
    total = rounding_divide_by_pot(powers, 12).sum(axis=-1, keepdims=True)
    zeros = 32 - np.frexp(total.astype(np.float64))[1]  # leading zeros in 32 bits: total < 2^frexp's exponent
    shift = 12 - zeros + 23
    product = saturating_rounding_doubling_high_mul(_reciprocal(total << zeros), powers)
    unit = np.where(shift <= 31, rounding_divide_by_pot(product, np.minimum(shift, 31)), 0)
    return np.clip(unit + limits.min, limits.min, limits.max).astype(x.dtype)


def _reciprocal(normal: Array) -> Array:
    """2^31 / (normal / 2^31) in Q0.31 for 2^31 <= normal < 2^32: gemmlowp's one_over_one_plus_x_for_x_in_0_1.

    Newton-Raphson on half = normal / 2^32 with 48/17 - 32/17 * half to start from, in Q2.29.
    """
    half = normal >> 1
    guess = 1515870810 + saturating_rounding_doubling_high_mul(half, -1010580540)
    for _ in range(3):
        error = (1 << 29) - saturating_rounding_doubling_high_mul(half, guess)
        guess = guess + saturate(saturating_rounding_doubling_high_mul(guess, error) << 2)
    return saturate(guess << 1)


def l2_normalization(view: LayerView, x: Array) -> Array:
    """L2_NORMALIZATION over the last axis; the formula is in stages.operators.rows.L2Normalization."""
    limits = np.iinfo(x.dtype)
    rows = x.astype(np.int64).reshape(-1, x.shape[-1]) - view.op.input_zero_point
    out = np.empty_like(rows)
    for index, row in enumerate(rows):
        multiplier, shift = _inverse_square_root(int(wrap((row * row).sum())))
        if x.dtype == np.uint8:
            out[index] = multiply_by_quantized_multiplier(128 * row, multiplier, shift, "double") + 128
        else:
            out[index] = multiply_by_quantized_multiplier(row, multiplier, shift + 7, "double")
    return np.clip(out, limits.min, limits.max).astype(x.dtype).reshape(x.shape)


def _inverse_square_root(n: int) -> tuple[int, int]:
    """GetInvSqrtQuantizedMultiplierExp: (multiplier, shift) of 1 / sqrt(n)."""
    if n <= 1:
        return 2**31 - 1, 0
    shift = 11
    while n >= 1 << 29:
        n, shift = n // 4, shift + 1
    pairs = (32 - n.bit_length() - 1) // 2 - 1
    shift, n = shift - pairs, n << (2 * pairs)
    multiply = saturating_rounding_doubling_high_mul
    half = rounding_divide_by_pot(n >> 1, 1)
    root = np.asarray(1 << 28, dtype=np.int64)
    for _ in range(5):
        cube = saturate(multiply(multiply(root, root), root) << 6)
        root = saturate((multiply(3 << 27, root) - multiply(half, cube)) << 3)
    multiplier = int(multiply(root, 1518500250))
    return (multiplier << -shift, 0) if shift < 0 else (multiplier, -shift)
