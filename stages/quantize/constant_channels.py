"""Output channels that are the same number for every input, as trained networks have them.

Their weights lost all meaning to a tiny scale, and so did their multipliers: a shift of -28 is nothing that a fast
requantization is exact for, and one such channel would keep a whole layer from its kernel. Their number is computed
here instead.
"""

from __future__ import annotations

import numpy as np

from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN, multiply_by_quantized_multiplier
from stages.quantize.arithmetic import LIMITS
from stages.quantize.operator import Array

# A multiplier of 2^-9: any of the usual kinds of kernel is exact for it.
_MULTIPLIER, _SHIFT = 1 << 30, -8
_SCALE = 1 << 9


def settle_constant_channels(
    weights: Array, constants: dict[str, Array], dtype: str, input_zero_point: int, weight_zero_point: int
) -> Array:
    """Weights int8 or uint8 (O, ...), those of constant channels at the zero point; changes `constants` likewise.

    A channel is constant when the smallest and the largest sum that inputs of `dtype` can give are requantized to one
    number n (requantization never falls as the sum rises). It then gets the bias n * 2^9 and the multiplier 2^-9.
    `constants` holds multiplier, shift and perhaps bias, int32[O]. One multiplier for all channels stays as it is.
    """
    multiplier, shift = constants["multiplier"], constants["shift"]
    if len(set(zip(multiplier.tolist(), shift.tolist(), strict=True))) == 1:
        return weights
    low, high = (limit - input_zero_point for limit in LIMITS[dtype])
    taps = weights.reshape(len(weights), -1).astype(np.int64) - weight_zero_point
    bias = constants.get("bias", np.zeros(len(weights), np.int32)).astype(np.int64)
    least = bias + np.minimum(taps * low, taps * high).sum(axis=1)
    most = bias + np.maximum(taps * low, taps * high).sum(axis=1)
    results = [multiply_by_quantized_multiplier(sums, multiplier, shift, "double") for sums in (least, most)]
    constant = (results[0] == results[1]) & (least >= INT32_MIN) & (most <= INT32_MAX) & (shift <= 0)
    # Larger numbers are clamped in any case; their bias would leave int32.
    constant &= np.abs(results[0]) <= 1 << 16
    if not constant.any():
        return weights
    constants["bias"] = np.where(constant, results[0] * _SCALE, bias).astype(np.int32)
    constants["multiplier"] = np.where(constant, _MULTIPLIER, multiplier).astype(np.int32)
    constants["shift"] = np.where(constant, _SHIFT, shift).astype(np.int32)
    settled = weights.copy()
    settled[constant] = weight_zero_point
    return settled
