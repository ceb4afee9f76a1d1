"""Tables of 256 outputs for ABS, ELU, EXP, GELU, LOG, NEG, RSQRT and SQRT, as LiteRT's.

ELU, EXP, GELU and LOG are float32 look-up tables in LiteRT too (LUTPopulate). ABS and RSQRT are computed in fixed
point, SQRT in float32 without rounding, NEG on the raw integers (elementwise.cc, neg.cc).
"""

from collections.abc import Callable, Mapping
from math import erfc, pi, sqrt
from typing import Any

import numpy as np

from stages.ir.arithmetic.fixed_point import inverse_square_root, multiply_by_quantized_multiplier
from stages.ir.arrays import Array
from stages.quantize.arithmetic import LIMITS, float32_product, float32_ratio, quantize_multiplier
from stages.quantize.tables import Quantized, correctly_rounded, finish, float_table

_RSQRT_BITS = 20  # fraction bits of the inverse root


def abs_table(x: Quantized, out: Quantized) -> Array:
    """ABS: the magnitude, requantized."""
    fixed = quantize_multiplier(float32_ratio(x.scale, out.scale))
    return finish(multiply_by_quantized_multiplier(np.abs(x.values - x.zero_point), *fixed, "double"), out)


def elu_table(x: Quantized, out: Quantized) -> Array:
    """ELU: exp(x) - 1 below 0, else x."""
    return float_table(x, out, lambda real: np.where(real < 0, correctly_rounded(np.expm1, real), real))


def exp_table(x: Quantized, out: Quantized) -> Array:
    """Return the table of the exponential function."""
    return float_table(x, out, lambda real: correctly_rounded(np.exp, real))


def gelu_table(x: Quantized, out: Quantized, *, approximate: bool) -> Array:
    """GELU: x * erfc(-x / sqrt(2)) / 2, or with a tanh of a polynomial; every step a float32."""
    return float_table(x, out, _gelu_by_tanh if approximate else _gelu)


def _gelu(x: Array) -> Array:
    tail = correctly_rounded(np.vectorize(erfc), x * np.float32(-sqrt(0.5)))
    return np.float32(0.5) * x * tail


def _gelu_by_tanh(x: Array) -> Array:
    inner = np.float32(sqrt(2 / pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + correctly_rounded(np.tanh, inner))


def log_table(x: Quantized, out: Quantized) -> Array:
    """LOG: the output's lowest value for x <= 0."""
    lowest = np.float32(LIMITS[out.dtype][0] - out.zero_point) * np.float32(out.scale)

    return float_table(x, out, lambda real: _log(real, lowest))


def neg_table(x: Quantized, out: Quantized) -> Array:
    """NEG of the integers; scales and zero points are ignored, and the lowest value stays."""
    return (-x.values).astype(out.dtype)


def rsqrt_table(x: Quantized, out: Quantized) -> Array:
    """RSQRT: the inverse root of the integer with 20 fraction bits, requantized.

    For 0 and below the result is the highest value. (Below 0 the reference aborts.)
    """
    root = float(np.sqrt(np.float32(x.scale)))
    multiplier, shift = quantize_multiplier(1.0 / float32_product(root, out.scale))
    results = []
    for value in (x.values - x.zero_point).tolist():
        if value <= 0:
            results.append(LIMITS[out.dtype][1] - out.zero_point)
            continue
        inverse, exponent = inverse_square_root(value)
        scaled = multiply_by_quantized_multiplier(1, inverse, exponent + _RSQRT_BITS, "double")
        results.append(int(multiply_by_quantized_multiplier(scaled, multiplier, shift - _RSQRT_BITS, "double")))
    return finish(np.array(results), out)


def sqrt_table(x: Quantized, out: Quantized) -> Array:
    """SQRT: truncated. Values below 0, on which the reference aborts, count as 0."""
    return finish(np.trunc(np.sqrt(np.maximum(x.real, 0)) / np.float32(out.scale)), out)


def _log(x: Array, lowest: np.float32) -> Array:
    return np.where(x > 0, correctly_rounded(np.log, np.where(x > 0, x, 1)), lowest)


def _rsqrt(x: Array, highest: np.float32) -> Array:
    return np.where(x > 0, np.float32(1) / np.sqrt(np.where(x > 0, x, np.float32(1))), highest)


# float32 functions behind tables of 16 bits: f(x, output scale, options).
REAL: dict[str, Callable[[Array, float, Mapping[str, Any]], Array]] = {
    "EXP": lambda x, scale, options: correctly_rounded(np.exp, x),
    "GELU": lambda x, scale, options: (_gelu_by_tanh if options.get("approximate") else _gelu)(x),
    "LOG": lambda x, scale, options: _log(x, np.float32(-(1 << 15)) * np.float32(scale)),
    "RSQRT": lambda x, scale, options: _rsqrt(x, np.float32((1 << 15) - 1) * np.float32(scale)),
}
