"""Fixed-point primitives against exact rational arithmetic, from what gemmlowp's documentation says they compute."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from stages.ir.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    round_half_away,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)

INT32 = st.integers(-(2**31), 2**31 - 1)


def half_up(x: Fraction) -> int:
    return floor(x + Fraction(1, 2))


def half_away(x: Fraction) -> int:
    return floor(x + Fraction(1, 2)) if x >= 0 else ceil(x - Fraction(1, 2))


@given(INT32, INT32)
@example(-(2**31), -(2**31))
@example(-(2**30), 1)
@example(2**30, 1)
def test_high_mul_rounds_the_doubled_product(a: int, b: int) -> None:
    exact = half_up(Fraction(a * b, 2**31))
    assert saturating_rounding_doubling_high_mul(a, b) == min(exact, 2**31 - 1)


@given(INT32, st.integers(0, 31))
@example(-3, 1)
@example(3, 1)
def test_division_by_a_power_of_two_rounds_halves_away_from_zero(x: int, exponent: int) -> None:
    assert rounding_divide_by_pot(x, exponent) == half_away(Fraction(x, 2**exponent))


@given(st.integers(-(2**24), 2**24), st.integers(2**30, 2**31 - 1), st.integers(-31, 6))
def test_single_rounding_is_the_nearest_integer_and_double_is_within_one(x: int, multiplier: int, shift: int) -> None:
    exact = Fraction(x * multiplier) * Fraction(2) ** (shift - 31)
    single = int(multiply_by_quantized_multiplier(x, multiplier, shift, "single"))
    double = int(multiply_by_quantized_multiplier(x, multiplier, shift, "double"))
    assert single == half_up(exact)
    assert abs(double - single) <= 1


def test_double_rounding_rounds_twice() -> None:
    # 0.4999...: the high multiplication makes 0.9999... a 1, and half of it rounds up again.
    x, multiplier, shift = 1, 2**31 - 1, -1
    assert multiply_by_quantized_multiplier(x, multiplier, shift, "double") == 1
    assert multiply_by_quantized_multiplier(x, multiplier, shift, "single") == 0


@given(st.floats(-1e6, 1e6, width=32))
@example(0.49999997)
@example(-0.5)
@example(8388607.5)
def test_round_half_away_is_that_of_the_real_number(x: float) -> None:
    assert round_half_away(np.array(x, dtype=np.float32)) == half_away(Fraction(x))
