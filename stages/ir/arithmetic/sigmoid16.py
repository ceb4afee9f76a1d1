"""Sigmoid and tanh of 16-bit fixed-point numbers: gemmlowp's, as in LiteRT's LSTM.

Also the sigmoid table that LiteRT interpolates elsewhere (stages.ir.operators.interpolated).

Qm.n has m integer and n fraction bits, m + n = 15. Everything is computed in int64 and exact for int16 operands.
"""

from math import exp

from stages.ir.arithmetic.fixed_point import rounding_divide_by_pot
from stages.ir.arrays import Array
from stages.support.lazy import np

LOW, HIGH = -(1 << 15), (1 << 15) - 1
# In Q0.15: exp(-1/8) and 1/3 for the polynomial around -1/8; exp(-2^i) for i from -2 on.
EXP_EIGHTH, THIRD = 28918, 10923
EXP_POWERS = (25520, 19875, 12055, 4435, 600, 11, 0)
# 48/17 and -32/17 in Q2.13, for the first guess of a reciprocal.
FIRST_GUESS, FIRST_SLOPE = 23130, -15420


def logistic16(x: Array) -> Array:
    """Return the sigmoid in Q0.15 of values in Q3.12."""
    x = x.astype(np.int64)
    positive = _doubled(_reciprocal(_exp(-np.abs(x), 3)), 1)
    return np.where(x == 0, 1 << 14, np.where(x > 0, positive, HIGH - positive))


def tanh16(x: Array, integer_bits: int) -> Array:
    """Return tanh in Q0.15 of values with 0 to 6 integer bits.

    tanh |x| = (1 - e) / (1 + e), e = exp(-2 |x|).
    """
    x = x.astype(np.int64)
    size = _doubled(_reciprocal(_exp(-np.abs(x), integer_bits + 1)) - (1 << 13), 2)
    return np.where(x == 0, 0, np.where(x < 0, -size, size))


def high_mul16(a: Array | int, b: Array | int) -> Array:
    """Return a * b / 2^15 of int16 values, to the nearest, halves up; not for a = b = -2^15."""
    return (np.asarray(a, np.int64) * np.asarray(b, np.int64) + (1 << 14)) >> 15


def _exp(x: Array, integer_bits: int) -> Array:
    """Return exp(x) in Q0.15 for x <= 0.

    A polynomial for the part in [-1/4, 0), and powers for the quarters.
    """
    fraction = 15 - integer_bits
    quarter = 1 << (fraction - 2)
    part = (x & (quarter - 1)) - quarter
    t = (part << integer_bits) + (1 << 12)
    t2 = high_mul16(t, t)
    t3, t4 = high_mul16(t2, t), high_mul16(t2, t2)
    inner = high_mul16(rounding_divide_by_pot(t4, 2) + t3, THIRD) + t2
    result = np.minimum(EXP_EIGHTH + high_mul16(EXP_EIGHTH, t + rounding_divide_by_pot(inner, 1)), HIGH)
    rest = part - x
    for i, power in zip(range(-2, integer_bits), EXP_POWERS, strict=False):
        result = np.where(rest >> (fraction + i) & 1, high_mul16(result, power), result)
    if integer_bits > 5:
        result = np.where(x < -(32 << fraction), 0, result)
    return np.where(x == 0, HIGH, result)


def _reciprocal(a: Array) -> Array:
    """Return 2 / (1 + a) in Q2.13 for a from 0 to 1 in Q0.15.

    Three Newton-Raphson steps on (1 + a) / 2.
    """
    half = (a + (1 << 15)) >> 1
    guess = FIRST_GUESS + high_mul16(half, FIRST_SLOPE)
    for _ in range(3):
        guess = guess + _doubled(high_mul16(guess, (1 << 13) - high_mul16(half, guess)), 2)
    return guess


def _doubled(x: Array, times: int) -> Array:
    """Return x * 2^times, limited to int16."""
    doubled: Array = np.clip(x << times, LOW, HIGH)
    return doubled


def sigmoid_table() -> Array:
    """Return the sigmoid of i / 24 in Q0.16, int32[256], for linear interpolation.

    Each entry is lowered by half of the interpolation error halfway to the next. The last entry is the largest
    16-bit number.
    """

    def sigmoid(x: float) -> float:
        return 65536 / (1 + exp(-x / 24))

    entries = [sigmoid(i) - ((sigmoid(i + 1) + sigmoid(i)) / 2 - sigmoid(i + 0.5)) / 2 for i in range(255)]
    return np.array([*map(round, entries), 65535], np.int32)
