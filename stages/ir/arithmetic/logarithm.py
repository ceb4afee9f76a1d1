"""Natural logarithm in fixed point: TFLite's log_x_for_x_greater_than_or_equal_to_1.

With z = 2^k * r, where r is near 2^(-1/4): ln z = k * ln 2 + ln r, and ln r is a quotient of polynomials. Qm.n as
gemmlowp.
"""

from stages.ir.arithmetic.fixed_point import (
    Integers,
    reciprocal,
    rounding_divide_by_pot,
    saturate,
    saturating_rounding_doubling_high_mul,
)
from stages.ir.arrays import Array
from stages.support.lazy import np

# All in Q0.31.
LN_2 = 1488522236
ROOT_OF_HALF = 1518500250
FOURTH_ROOT_OF_HALF = 1805811301
# Coefficients of the quotient: 11/240, 1/20 and 1/4 times 2^(1/4), and 2 * 2^(-1/4) - 2^(1/4).
ALPHA_N, ALPHA_D, ALPHA_F, ALPHA_I = 117049297, 127690142, 638450708, 1057819769
SUM_BITS = 12  # integer bits of the argument
POWER_BITS = 6  # integer bits of k
QUARTER = 1 << 23  # of k


def natural_logarithm(x: Integers) -> Array:
    """Return ln x in Q5.26 for x in Q12.19, x >= 2^19 (1.0)."""
    multiply, value = saturating_rounding_doubling_high_mul, np.asarray(x, dtype=np.int64)
    zeros = _leading_zeros(value)
    first = saturate(multiply(saturate(value << (zeros - 1)), ROOT_OF_HALF) << 1)
    headroom = _leading_zeros(multiply(value, ROOT_OF_HALF)) - 1
    r = np.minimum(first, saturate(value << headroom))
    power = np.maximum(_power(SUM_BITS - zeros) + QUARTER, _power(SUM_BITS - headroom) - QUARTER)
    middle = (r + FOURTH_ROOT_OF_HALF + 1) >> 1
    q = 2 * (r - FOURTH_ROOT_OF_HALF)
    square = multiply(q, q)
    above = multiply(q, r) + multiply(multiply(q, square), ALPHA_N)
    below = multiply(middle, ALPHA_I + q + multiply(ALPHA_D, square)) + multiply(ALPHA_F, q)
    quotient = multiply(rounding_divide_by_pot(above, POWER_BITS), reciprocal(below + (1 << 31)))
    return saturate((multiply(power, LN_2) + quotient) << 1)


def _power(k: Array) -> Array:
    return saturate(k << (31 - POWER_BITS))


def _leading_zeros(x: Array) -> Array:
    """Return the leading zero bits of positive int32 values."""
    zeros: Array = 32 - np.frexp(x.astype(np.float64))[1]
    return zeros
