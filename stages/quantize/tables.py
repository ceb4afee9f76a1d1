"""Tables of 256 outputs for functions of one 8-bit tensor, equal to LiteRT's reference.

Entry 0 is for the lowest value of the input's type. The reference has three kinds of arithmetic: fixed point with a
requantizing multiplier (RELU and the like), float32 look-up tables (LOGISTIC, TANH, and those of
stages.quantize.function_tables), and 16-bit fixed point (HARD_SWISH). All multipliers here come from float32 quotients
of scales.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantized_bound, round_half_away
from stages.ir.arrays import Array
from stages.quantize.arithmetic import LIMITS, float32_product, float32_ratio, quantize_multiplier

_FAR = np.float32(1e9)  # beyond every value of 8 bits, and inside int64


@dataclass(frozen=True)
class Quantized:
    """Type, scale and zero point of a tensor."""

    dtype: str
    scale: float
    zero_point: int

    @property
    def values(self) -> Array:
        """All values of the type, lowest first, as int64."""
        low, high = LIMITS[self.dtype]
        return np.arange(low, high + 1, dtype=np.int64)

    @property
    def real(self) -> Array:
        """The real number of each value, float32."""
        return (self.values - self.zero_point).astype(np.float32) * np.float32(self.scale)


def finish(values: Array, out: Quantized, low: int | None = None, high: int | None = None) -> Array:
    """Add the zero point, and clamp to the type and to the bounds."""
    limits = LIMITS[out.dtype]
    bounds = max(limits[0], limits[0] if low is None else low), min(limits[1], limits[1] if high is None else high)
    return np.clip(values.astype(np.int64) + out.zero_point, *bounds).astype(out.dtype)


def clamp_table(x: Quantized, out: Quantized, low: float | None, high: float | None) -> Array:
    """RELU (0, None), RELU6 (0, 6), RELU_N1_TO_1 (-1, 1): requantized, then clamped."""
    multiplier, shift = quantize_multiplier(float32_ratio(x.scale, out.scale))
    scaled = multiply_by_quantized_multiplier(x.values - x.zero_point, multiplier, shift, "double")
    bounds = (None if bound is None else quantized_bound(bound, out.scale, out.zero_point) for bound in (low, high))
    return finish(scaled, out, *bounds)


def leaky_relu_table(x: Quantized, out: Quantized, alpha: float) -> Array:
    """LEAKY_RELU: one multiplier for values from the zero point on, another one below.

    With a negative slope the value is multiplied by its magnitude, and the rounded result negated.
    """
    values = x.values - x.zero_point
    identity = quantize_multiplier(float32_ratio(x.scale, out.scale))
    slope = quantize_multiplier(abs(float32_ratio(float32_product(x.scale, alpha), out.scale)))
    above, below = (multiply_by_quantized_multiplier(values, *fixed, "double") for fixed in (identity, slope))
    return finish(np.where(values >= 0, above, -below if alpha < 0 else below), out)


def logistic_table(x: Quantized, out: Quantized) -> Array:
    """LOGISTIC: 1 / (1 + exp(-x)) in float32."""
    return float_table(x, out, lambda real: np.float32(1) / (np.float32(1) + correctly_rounded(np.exp, -real)))


def tanh_table(x: Quantized, out: Quantized) -> Array:
    """TANH in float32."""
    return float_table(x, out, lambda real: correctly_rounded(np.tanh, real))


def requantize_table(x: Quantized, out: Quantized) -> Array:
    """Rescaled input of a uint8 CONCATENATION: round(x * scale + bias) in float32, unfused."""
    if x == out:
        return x.values.astype(out.dtype)
    scale = np.float32(x.scale) * (np.float32(1) / np.float32(out.scale))
    bias = np.float32(-x.zero_point) * scale
    return finish(round_half_away(x.values.astype(np.float32) * scale + bias), out)


def float_table(x: Quantized, out: Quantized, function: Callable[[Array], Array]) -> Array:
    """Function of the real number times the inverse scale, halves away from zero (LUTPopulate)."""
    with np.errstate(over="ignore"):
        steps = function(x.real).astype(np.float32) * (np.float32(1) / np.float32(out.scale))
    return finish(round_half_away(np.clip(steps, -_FAR, _FAR)), out)


def correctly_rounded(function: Callable[[Array], Array], x: Array) -> Array:
    """The function in double, rounded to float32, as a good float32 library computes it."""
    with np.errstate(over="ignore"):
        return function(x.astype(np.float64)).astype(np.float32)


def hard_swish_table(x: Quantized, out: Quantized) -> Array:
    """HARD_SWISH: x * relu6(x + 3) / 6 in 16-bit fixed point.

    Inputs are scaled by 128 to 16 bits ("hires"). relu6(x + 3) / 6 is (t + 1) / 2 with t = x / 3 saturated to [-1, 1)
    in Q0.15. Its product with the input, which has the output's scale up to a power of two, is shifted down. Raises
    ValueError if the output's scale is too fine for that.
    """
    hires = float32_product(1 / 128, x.scale)
    output, output_shift = quantize_multiplier(float32_ratio(hires, out.scale))
    relu, relu_shift = quantize_multiplier(float32_ratio(hires, float(np.float32(3) / np.float32(32768))))
    if output_shift > 0:
        raise ValueError("the output's scale is below 1/128 of the input's")
    values = (x.values - x.zero_point) << 7
    on_output_scale = _multiply_int16(values, _to_int16(output))
    gate = values
    if relu_shift > 0:
        # One bit of the shift comes after the multiplication, or it would saturate too early.
        gate = _saturate_int16(gate << (relu_shift - 1))
    gate = _multiply_int16(gate, _to_int16(relu))
    if relu_shift > 0:
        gate = _saturate_int16(gate << 1)
    elif relu_shift < 0:
        gate = _divide_int16(gate, -relu_shift)
    gate = (gate + (1 << 15)) >> 1
    product = gate * on_output_scale
    truncated = np.sign(product) * (np.abs(product) >> 15)
    return finish(_divide_int16(truncated, -output_shift), out)


def _to_int16(multiplier: int) -> int:
    """DownScaleInt32ToInt16Multiplier."""
    return min((multiplier + (1 << 15)) >> 16, 2**15 - 1)


def _saturate_int16(x: Array) -> Array:
    return np.clip(x, -(2**15), 2**15 - 1)


def _divide_int16(x: Array, exponent: int) -> Array:
    """RoundingDivideByPOT of int16: from 16 on its mask is -1, and results are 1 and -1."""
    mask = np.int64((1 << exponent) - 1).astype(np.int16).astype(np.int64)
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


def _multiply_int16(a: Array, b: int) -> Array:
    """SaturatingRoundingDoublingHighMul of int16: a * b / 2^15 to the nearest, halves up."""
    return _saturate_int16((a * b + (1 << 14)) >> 15)
