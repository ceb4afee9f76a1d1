"""log(1 + x) in float32, with the roundings of the C libraries of microcontrollers.

Front ends compute their filters on the device with log1pf. Another rounding would change filter weights.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_LN2_HIGH, _LN2_LOW = np.float32(0.69313812256), np.float32(9.0580006145e-06)
# Coefficients of (log((1 + s) / (1 - s)) - 2 s) / s**3, from the lowest power of s**2.
_SERIES = tuple(
    np.float32(value)
    for value in (
        0.66666668653,
        0.40000000596,
        0.28571429849,
        0.22222198546,
        0.18183572590,
        0.15313838422,
        0.14798198640,
    )
)
_SQRT_HALF = np.uint32(0x3504F7)  # mantissa of sqrt(2)
_SMALL = np.float32(0.41422)  # below sqrt(2) - 1 there is no power of two to split off


def log1p(values: Any) -> npt.NDArray[np.float32]:
    """Return log(1 + x) for x >= 0, in the float32 operations of fdlibm's s_log1pf.c.

    It splits 1 + x into 2**k (1 + f) with |f| < 0.42, and sums a series of s = f / (2 + f).
    """
    x = np.asarray(values, np.float32)
    one, half, two = np.float32(1), np.float32(0.5), np.float32(2)
    u = one + x
    bits = u.view(np.uint32)
    exponent = (bits >> np.uint32(23)).astype(np.int32) - 127
    mantissa = bits & np.uint32(0x7FFFFF)
    upper = mantissa >= _SQRT_HALF
    scaled = (mantissa | np.where(upper, np.uint32(0x3F000000), np.uint32(0x3F800000))).view(np.float32)
    lost = np.where(exponent > 0, one - (u - x), x - (u - one)) / u  # what 1 + x rounded away
    whole = x < _SMALL
    f = np.where(whole, x, scaled - one)
    k = np.where(whole, 0, exponent + upper).astype(np.float32)
    square = half * f * f
    s = f / (two + f)
    z = s * s
    series = np.zeros_like(z)
    for coefficient in reversed(_SERIES):
        series = z * (coefficient + series)
    split = k * _LN2_HIGH - ((square - (s * (square + series) + (k * _LN2_LOW + lost))) - f)
    return np.where(k == 0, f - (square - s * (square + series)), split).astype(np.float32)
