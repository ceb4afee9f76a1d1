"""Real multipliers as fixed-point numbers."""

from math import floor, frexp, isfinite, log2

Fixed = tuple[int, int]  # (multiplier, shift)


class NoMultiplier(ValueError):
    """The scales of an operator give a multiplier that is not finite."""


def quantize_multiplier(real: float) -> Fixed:
    """Return (multiplier, shift) of a real multiplier: TFLite's QuantizeMultiplier.

    real = multiplier * 2^(shift - 31) >= 0; multiplier is in [2^30, 2^31), or 0. Raises NoMultiplier if `real` is
    infinite or NaN.
    """
    if not isfinite(real):
        raise NoMultiplier(f"would scale its numbers by {real}; check the scales of its tensors")
    if real == 0.0:
        return 0, 0
    fraction, shift = frexp(real)
    multiplier = floor(fraction * 2**31 + 0.5)
    if multiplier == 2**31:
        multiplier, shift = multiplier // 2, shift + 1
    if shift < -31:
        return 0, 0
    return multiplier, shift


def power_of_two(scale: float) -> int | None:
    """Return the exponent of a power of two (tolerance of LiteRT's CheckedLog2), else None."""
    exponent = log2(scale)
    return round(exponent) if abs(exponent - round(exponent)) < 1e-3 else None
