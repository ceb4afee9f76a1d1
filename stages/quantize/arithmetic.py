"""Fixed-point constants from scales, rounded as in the reference kernels.

Each function names the C++ expression that it follows; tests compare with LiteRT over scales that separate the
variants. float32 steps are explicit, because they are visible in the outputs.
"""

from collections.abc import Sequence

import numpy as np

from stages.ir.arithmetic.multipliers import Fixed as Fixed
from stages.ir.arithmetic.multipliers import NoMultiplier as NoMultiplier
from stages.ir.arithmetic.multipliers import quantize_multiplier as quantize_multiplier

LIMITS = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
}


def convolution_multipliers(
    dtype: str, input_scale: float, weight_scales: Sequence[float], output_scale: float
) -> list[float]:
    """Real multipliers of CONV_2D and DEPTHWISE_CONV_2D, one for each weight scale.

    int8 (PopulateConvolutionQuantizationParams): all in double. uint8 (GetQuantizedConvolutionMultipler): the product
    of input and weight scale is a float32.
    """
    if dtype == "uint8":
        return [float(np.float32(input_scale) * np.float32(scale)) / output_scale for scale in weight_scales]
    return [input_scale * scale / output_scale for scale in weight_scales]


def float32_product(*factors: float) -> float:
    """a * b * ..., each product rounded to float32."""
    result = np.float32(factors[0])
    with np.errstate(over="ignore"):
        for factor in factors[1:]:
            result = result * np.float32(factor)
    return float(result)


def float32_ratio(numerator: float, denominator: float) -> float:
    """numerator / denominator in float32."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return float(np.float32(numerator) / np.float32(denominator))


def mean_multiplier(input_scale: float, output_scale: float, count: int) -> Fixed:
    """Return MEAN's multiplier: that of the scales, over `count` (QuantizedMeanOrSum).

    The multiplier is shifted left by floor(log2(count)) before the integer division, to keep as many bits as fit.
    """
    multiplier, shift = quantize_multiplier(input_scale / output_scale)
    headroom = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << headroom) // count, shift - headroom
