"""Tables of exponentials for SOFTMAX: gemmlowp's exp_on_negative_values of 256 differences."""

from math import floor

import numpy as np

from stages.ir.arithmetic.fixed_point import (
    INT32_MAX,
    rounding_divide_by_pot,
    saturate,
    saturating_rounding_doubling_high_mul,
)
from stages.ir.arrays import Array
from stages.quantize.arithmetic import quantize_multiplier

_INTEGER_BITS = 5  # the difference is Q5.26
_FRACTION_BITS = 31 - _INTEGER_BITS

# exp(-2^k) for k = -2 ... 4 in Q0.31, with the bit of the Q5.26 difference each belongs to.
_FACTORS = tuple((1 << (_FRACTION_BITS + k), floor(np.exp(-(2.0**k)) * 2**31 + 0.5)) for k in range(-2, 5))
_EXP_OF_MINUS_EIGHTH = floor(np.exp(-1 / 8) * 2**31 + 0.5)
_ONE_THIRD = floor(2**31 / 3 + 0.5)


def exponentials(scale: float, beta: float) -> Array:
    """exp(-beta * scale * d) in Q0.31 for d = 0 ... 255, int32[256].

    Follows PreprocessSoftmaxScaling: the difference times beta * scale in Q5.26, multiplied in fixed point. Differences
    beyond Q5.26 (CalculateInputRadius) give 0. Raises ValueError if beta * scale is below 2^-26 or not positive: the
    reference's multiplier would be below 1.
    """
    multiplier, shift = _scaling(scale, beta)
    radius = floor(((1 << _INTEGER_BITS) - 1) * 2.0**_FRACTION_BITS / 2.0**shift)
    differences = np.arange(256, dtype=np.int64)
    scaled = saturating_rounding_doubling_high_mul(saturate(-(differences << shift)), multiplier)
    return np.where(differences <= radius, exp_on_negative_values(scaled), 0).astype(np.int32)


def _scaling(scale: float, beta: float) -> tuple[int, int]:
    """Multiplier and shift of a difference (PreprocessSoftmaxScaling).

    Raises ValueError as `exponentials`.
    """
    real = min(beta * scale * (1 << _FRACTION_BITS), 2.0**31 - 1)
    multiplier, shift = quantize_multiplier(real)
    if not real > 1 or shift < 0:
        raise ValueError(f"beta * scale is {beta * scale:g}; it must be above 2^-26")
    return multiplier, shift


def differences(scale: float) -> Array:
    """-scale * d in Q5.26 for d = 0 ... 255, int32[256].

    Not below -20, since LOG_SOFTMAX ends at -16.
    """
    multiplier, shift = _scaling(scale, 1.0)
    scaled = saturating_rounding_doubling_high_mul(saturate(-(np.arange(256, dtype=np.int64) << shift)), multiplier)
    return np.maximum(scaled, -20 << _FRACTION_BITS).astype(np.int32)


def exp_on_negative_values(x: Array) -> Array:
    """exp(x) in Q0.31 of x <= 0 in Q5.26.

    A polynomial on [-1/4, 0), then one factor for each bit above.
    """
    quarter = 1 << (_FRACTION_BITS - 2)
    fraction = (x & (quarter - 1)) - quarter
    result = _exp_on_last_quarter(saturate(fraction << _INTEGER_BITS))
    above = fraction - x
    for bit, factor in _FACTORS:
        result = np.where(above & bit, saturating_rounding_doubling_high_mul(result, factor), result)
    return np.where(x == 0, INT32_MAX, result)


def _exp_on_last_quarter(x: Array) -> Array:
    """exp of x in [-1/4, 0), Q0.31: the Taylor series around -1/8 to the fourth power."""
    multiply = saturating_rounding_doubling_high_mul
    x = x + (1 << 28)
    square = multiply(x, x)
    cube, fourth = multiply(square, x), multiply(square, square)
    tail = rounding_divide_by_pot(multiply(rounding_divide_by_pot(fourth, 2) + cube, _ONE_THIRD) + square, 1)
    return saturate(_EXP_OF_MINUS_EIGHTH + multiply(_EXP_OF_MINUS_EIGHTH, x + tail))
