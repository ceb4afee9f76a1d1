"""Fixed-point multiplication of the reference kernels, on numpy arrays.

Names follow gemmlowp's and TFLite's functions. Everything is computed in int64 and exact for int32 operands.
"""

from stages.ir.arrays import Array
from stages.support.lazy import np

Integers = Array | int

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def saturate(x: Integers) -> Array:
    """Return x limited to int32, as int64."""
    return np.clip(np.asarray(x, dtype=np.int64), INT32_MIN, INT32_MAX)


def wrap(x: Integers) -> Array:
    """Return x modulo 2^32, as an int32 accumulator holds it, in int64."""
    return np.asarray(x, dtype=np.int64).astype(np.int32).astype(np.int64)


def saturating_rounding_doubling_high_mul(a: Integers, b: Integers) -> Array:
    """Return a * b / 2^31 of int32 values, to the nearest, halves up; (-2^31)^2 saturates.

    gemmlowp adds 2^30 (or 1 - 2^30 for a negative product) and divides towards zero, which is the same number.
    """
    return saturate((np.asarray(a, dtype=np.int64) * np.asarray(b, dtype=np.int64) + (1 << 30)) >> 31)


def rounding_divide_by_pot(x: Integers, exponent: Integers) -> Array:
    """Return x / 2^exponent to the nearest integer, halves away from zero. 0 <= exponent."""
    x, exponent = np.asarray(x, dtype=np.int64), np.asarray(exponent, dtype=np.int64)
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponent) + ((x & mask) > threshold)


def multiply_by_quantized_multiplier(x: Integers, multiplier: Integers, shift: Integers, rounding: str) -> Array:
    """Return x * multiplier * 2^(shift - 31) as int64.

    x are int32 values; multiplier and shift are scalars or broadcast against x (per channel along the last axis). For
    `rounding` see stages.ir.layers.rounding.
    """
    x, multiplier, shift = (np.asarray(value, dtype=np.int64) for value in (x, multiplier, shift))
    if rounding == "single":
        return (x * multiplier + (np.int64(1) << (30 - shift))) >> (31 - shift)
    if rounding != "double":
        raise ValueError(f"rounding {rounding!r} is neither 'double' nor 'single'")
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(wrap(x << left), multiplier), right)


def multiply_wide(x: Integers, multiplier: Integers, shift: int) -> Array:
    """Return x * multiplier * 2^(shift - 31) of 64-bit values as an int32, halves up.

    MultiplyByQuantizedMultiplier of an int64: it uses the multiplier's upper 16 bits, rounded, at most 2^15 - 1. shift
    <= 14.
    """
    reduced = np.minimum((np.asarray(multiplier, dtype=np.int64) + (1 << 15)) >> 16, (1 << 15) - 1)
    return wrap((np.asarray(x, dtype=np.int64) * reduced + (1 << (14 - shift))) >> (15 - shift))


def reciprocal(normal: Integers) -> Array:
    """Return 2^31 / (normal / 2^31) in Q0.31 for 2^31 <= normal < 2^32.

    gemmlowp's one_over_one_plus_x_for_x_in_0_1: Newton-Raphson on half = normal / 2^32 with 48/17 - 32/17 * half to
    start from, in Q2.29.
    """
    half = np.asarray(normal, dtype=np.int64) >> 1
    guess = 1515870810 + saturating_rounding_doubling_high_mul(half, -1010580540)
    for _ in range(3):
        error = (1 << 29) - saturating_rounding_doubling_high_mul(half, guess)
        guess = guess + saturate(saturating_rounding_doubling_high_mul(guess, error) << 2)
    return saturate(guess << 1)


def inverse_square_root(n: int) -> tuple[int, int]:
    """Return (multiplier, shift) of 1 / sqrt(n) for an int32 n >= 0.

    TFLite's GetInvSqrtQuantizedMultiplierExp.
    """
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


def upper_half(multiplier: Integers) -> Array:
    """Return a 31-bit multiplier as a 15-bit one, to the nearest, within int16."""
    return np.minimum((np.asarray(multiplier, dtype=np.int64) + (1 << 15)) >> 16, (1 << 15) - 1)


def scale_by_half(x: Integers, multiplier: Integers, shift: Integers) -> Array:
    """Return x * multiplier * 2^(shift - 31) of 48-bit integers as int64.

    MultiplyByQuantizedMultiplier of an int64.
    """
    x, shift = (np.asarray(value, dtype=np.int64) for value in (x, shift))
    return (x * upper_half(multiplier) + (np.int64(1) << (14 - shift))) >> (15 - shift)


def scale_and_floor(x: Integers, multiplier: Integers, offset: Integers, shift: Integers) -> Array:
    """Return (x * multiplier + offset) >> shift as int64: the rounding `floor`."""
    x, multiplier, offset, shift = (np.asarray(value, dtype=np.int64) for value in (x, multiplier, offset, shift))
    return (x * multiplier + offset) >> shift


def by_steps(x: Array, steps: Array) -> Array:
    """Evaluate a rising step function, given by its breakpoints.

    The result is steps[0] plus the number of breakpoints in steps[1:] below x.
    """
    return steps[0].astype(np.int64) + np.searchsorted(steps[1:], x, side="left")


def round_half_away(x: Array) -> Array:
    """Return the nearest integer in the type of x, halves away from zero: std::round.

    Adding 0.5 in the same type would round 0.49999997 up, so the fraction decides.
    """
    truncated = np.trunc(x)
    return truncated + np.where(np.abs(x - truncated) >= 0.5, np.sign(x), 0).astype(x.dtype)


def quantized_bound(value: float, scale: float, zero_point: int) -> int:
    """Return zero_point + value / scale in float32, halves away from zero.

    TFLite's CalculateActivationRangeQuantized.
    """
    ratio = np.asarray(np.float32(value) / np.float32(scale))
    return zero_point + int(round_half_away(np.clip(ratio, -1e6, 1e6)))
