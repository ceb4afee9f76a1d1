"""Output channels with the same value for every input, as in trained networks.

Their scale is tiny, and so are their multipliers. A shift of -28 is out of the range for which fast
requantizations are exact, and one such channel would exclude a whole layer from such kernels. So the value is computed
at build time.
"""

import numpy as np

from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN, multiply_by_quantized_multiplier
from stages.ir.arrays import Array
from stages.quantize.arithmetic import LIMITS

# A multiplier of 2^-9, for which all usual kernels are exact.
_MULTIPLIER, _SHIFT = 1 << 30, -8
_SCALE = 1 << 9


def fold_constant_channels(
    weights: Array, constants: dict[str, Array], dtype: str, input_zero_point: int, weight_zero_point: int
) -> Array:
    """Return weights int8 or uint8 (O, ...) with those of constant channels at the zero point.

    `constants` is changed likewise: multiplier, shift and perhaps bias, int32[O]. A channel is constant if its smallest
    and its largest sum, over inputs of `dtype`, requantize to one value n (requantization is monotonic). It gets the
    bias n * 2^9 and the multiplier 2^-9. A multiplier that all channels share stays.
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
    # Larger values are clamped anyway; their bias would overflow int32.
    constant &= np.abs(results[0]) <= 1 << 16
    if not constant.any():
        return weights
    constants["bias"] = np.where(constant, results[0] * _SCALE, bias).astype(np.int32)
    constants["multiplier"] = np.where(constant, _MULTIPLIER, multiplier).astype(np.int32)
    constants["shift"] = np.where(constant, _SHIFT, shift).astype(np.int32)
    folded = weights.copy()
    folded[constant] = weight_zero_point
    return folded
