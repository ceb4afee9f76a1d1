"""The arm_dsp kernels' requantization is exact wherever rounding.py gives a rounder; packed words hold the weights."""

from __future__ import annotations

import numpy as np
import pytest

from stages.backends.cortex_m.kernels.arm_dsp import base, packing, rounding
from stages.backends.kernels.eight_bit import Range
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier

LOW, HIGH = -128, 127


def signed(word: int) -> int:
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word


def smmla(x: int, y: int, total: int, *, rounded: bool) -> int:
    """SMMLA and SMMLAR, Arm Architecture Reference Manual: bits 63...32 of (total : 0) + x * y (+ 2^31)."""
    return signed(((total << 32) + x * y + (1 << 31 if rounded else 0)) >> 32)


def as_kernel(acc: int, doubled: int, rounder: int, zero_point: int, how: str) -> int:
    """What the kernels do with one accumulator, instruction by instruction, up to usat16's operand."""
    t = smmla(acc, doubled, acc, rounded=how != "single")
    if how == "lowered":
        t += t >> 31
    y = smmla(t, rounder, zero_point, rounded=True)
    assert -(1 << 15) <= y < 1 << 15
    return int(np.clip(y, LOW, HIGH))


def near_halves(low: int, high: int, multiplier: int, shift: int, rng: np.random.Generator) -> np.ndarray:
    """Accumulators whose scaled value lies on a half or next to it, the bounds, and any others."""
    scale = multiplier / 2.0 ** (31 - shift)
    halves = rng.integers(-300, 300, 60) + 0.5
    close = np.round(halves / scale).astype(np.int64)[:, None] + np.arange(-2, 3)
    found = np.concatenate([close.ravel(), rng.integers(low, high + 1, 40), [low, high, 0, -1, 1]])
    return found[(found >= low) & (found <= high)]


@pytest.mark.parametrize("how", ["double", "single", "lowered"])
@pytest.mark.parametrize("shift", range(-31, -1))
def test_two_multiplications_equal_the_reference_for_every_shift(how, shift):
    rng = np.random.default_rng(-shift)
    tried = 0
    for multiplier in (1 << 30, (1 << 31) - 1, *rng.integers(1 << 30, 1 << 31, 3)):
        for reach in (1, 100, 1 << 14, 1 << 22, 1 << 29):
            middle = int(rng.integers(-reach, reach)) * int(rng.integers(0, 2))
            low, high = max(middle - reach, -(1 << 31)), min(middle + reach, (1 << 31) - 1)
            if max(-low, high) * int(multiplier) >> 31 >= (1 << 15) - 512 << -shift:
                continue
            m, s = np.array([multiplier], np.int64).astype(np.int32), np.array([shift], np.int32)
            reference = "double" if how == "lowered" else how
            try:
                p = rounding.rounders(m, s, Range(np.array([low]), np.array([high])), reference)[0]
            except ValueError:
                continue
            p = rounding.lowered_rounder(shift) if how == "lowered" else int(p)
            zero_point = int(rng.integers(-128, 128))
            acc = near_halves(low, high, int(multiplier), shift, rng)
            expected = np.clip(multiply_by_quantized_multiplier(acc, m, s, reference) + zero_point, LOW, HIGH)
            doubled = int(rounding.doubled(m)[0])
            got = [as_kernel(int(a), doubled, p, zero_point, how) for a in acc]
            np.testing.assert_array_equal(got, expected, f"{multiplier} {low} {high}")
            tried += 1
    assert tried


def as_long_kernel(acc: int, scale: np.ndarray, zero_point: int) -> int:
    """The same for the long rounding: every register holds 32 bits."""
    left, doubled, post, rounder = map(int, scale)
    shifted = signed(acc << left)
    t = signed(smmla(shifted, doubled, shifted, rounded=True) << post)
    return int(np.clip(smmla(signed(t + (t >> 31)), -rounder, zero_point, rounded=True), LOW, HIGH))


@pytest.mark.parametrize("shift", range(-31, 13))
def test_the_long_rounding_equals_the_reference_for_every_shift(shift):
    rng = np.random.default_rng(shift + 31)
    for multiplier in (1 << 30, (1 << 31) - 1, *rng.integers(1 << 30, 1 << 31, 3)):
        for bits in range(1, 32):
            reach = ((1 << bits) - 1) >> max(shift, 0) >> (shift >= 0)
            low, high = -reach, int(rng.integers(0, reach + 1))
            m, s = np.array([multiplier], np.int64).astype(np.int32), np.array([shift], np.int32)
            acc_range = Range(np.array([low]), np.array([high]))
            scale = rounding.long_rounding(m, s, acc_range)[0]
            zero_point = int(rng.integers(-128, 128))
            acc = near_halves(low, high, int(multiplier), shift, rng)
            expected = np.clip(multiply_by_quantized_multiplier(acc, m, s, "double") + zero_point, LOW, HIGH)
            got = [as_long_kernel(int(a), scale, zero_point) for a in acc]
            np.testing.assert_array_equal(got, expected, f"{multiplier} {low} {high}")


def test_the_long_rounding_is_for_layers_that_have_no_short_one():
    m, s = np.array([1 << 30, 1 << 30], np.int32), np.array([-5, -14], np.int32)
    for size, long in ((1 << 12, False), (1 << 20, True)):
        reach = Range(np.array([-size, -size]), np.array([size, size]))
        assert rounding.requantization(m, s, reach, "double", long=True).long == long
    with pytest.raises(ValueError, match="channel 1 has shift -14"):
        rounding.requantization(m, s, reach, "double", long=False)


@pytest.mark.parametrize(("shift", "size"), [(1, 1 << 30), (0, 1 << 31), (0, 1 << 30), (31, 1), (-1, 1 << 31)])
def test_an_accumulator_that_leaves_its_register_has_no_long_rounding(shift, size):
    m, s = np.array([1 << 30, (1 << 31) - 1], np.int32), np.array([-5, shift], np.int32)
    reach = Range(np.array([-1, -size]), np.array([1, size]))
    with pytest.raises(ValueError, match=f"channel 1 has shift {shift}"):
        rounding.long_rounding(m, s, reach)


def test_a_channel_that_cannot_be_rounded_is_named():
    m, s = np.array([1 << 30, 1 << 30], np.int32), np.array([-5, 0], np.int32)
    reach = Range(np.array([-1000, -1000]), np.array([1000, 1000]))
    with pytest.raises(ValueError, match="channel 1 has shift 0"):
        rounding.rounders(m, s, reach, "double")


def arithmetic(weights: np.ndarray, zero_point: int, size: int) -> base.Arithmetic:
    zeros = np.zeros(len(weights), np.int64)
    scale = rounding.Requantization(np.zeros((len(weights), 2), np.int32), long=False)
    return base.Arithmetic(weights, zero_point, zeros, zeros, zeros, Range(zeros - size, zeros + size), scale)


@pytest.mark.parametrize(("weight", "zero_point", "size", "form"), [
    (-127, 0, (1 << 23) - 1, "ab"), (-128, 0, 100, "bytes"), (-127, 0, 1 << 23, "bytes"), (5, 3, 100, "bytes"),
])  # fmt: skip
def test_ab_is_taken_only_where_it_is_exact(weight, zero_point, size, form):
    """256 * -128 - 1 leaves int16, 256 * 2^23 int32."""
    made = arithmetic(np.array([[-1], [weight]]), zero_point, size)
    assert packing.form(made, packing.channel_pairs(2)) == form
