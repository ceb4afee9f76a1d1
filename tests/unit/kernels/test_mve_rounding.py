"""The MVE kernels' requantization in two multiplications, against the reference's, instruction by instruction."""

from __future__ import annotations

import numpy as np
import pytest

from stages.backends.cortex_m.kernels.mve.rounding import requantization
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier

ZERO_POINTS = (-128, 0, 127)


def near_halves(multiplier: int, shift: int, size: int) -> np.ndarray:
    """Accumulators within +-size whose results lie at and next to a half, and the bounds."""
    unit = 2.0 ** (31 - shift) / multiplier
    results = np.concatenate([np.arange(-300, 300), np.arange(-(1 << 20), 1 << 20, 997)])
    acc = np.round((results[:, None] + 0.5) * unit).astype(np.int64) + np.arange(-2, 3)
    every = np.concatenate([acc.reshape(-1), [-size, size, 0, -1, 1]])
    return every[np.abs(every) <= size]


def vectors(acc: np.ndarray, multiplier: int, rounder: int, mode: str) -> np.ndarray:
    """VQRDMULH or VQDMULH, the lowering, VQRDMULH (Armv8-M Architecture Reference Manual; nothing saturates here)."""
    t = (2 * acc * multiplier + (0 if mode == "single" else 1 << 31)) >> 32
    if mode == "lowered":
        t = t + (t >> 63)
    return (2 * t * rounder + (1 << 31)) >> 32


@pytest.mark.parametrize("shift", range(-31, 0))
@pytest.mark.parametrize("size", [1 << 12, 1 << 20, (1 << 29) + 3])
@pytest.mark.parametrize(("rounding", "lowered"), [("double", False), ("double", True), ("single", False)])
def test_two_multiplications_give_the_reference_s_output(shift, size, rounding, lowered):
    rng = np.random.default_rng(shift + 31)
    for multiplier in (1 << 30, (1 << 31) - 1, int(rng.integers(1 << 30, 1 << 31))):
        constants = (np.array([multiplier], np.int32), np.array([shift], np.int32), np.array([size], np.int64))
        made = requantization(*constants, rounding, lowered=lowered)
        acc = near_halves(multiplier, shift, size)
        wanted = multiply_by_quantized_multiplier(acc, multiplier, shift, rounding)
        got = vectors(acc, multiplier, int(made.rounders[0]), made.mode)
        assert not (lowered and made.mode != "lowered")
        for zero_point in ZERO_POINTS:
            np.testing.assert_array_equal(np.clip(got + zero_point, -128, 127), np.clip(wanted + zero_point, -128, 127))


@pytest.mark.parametrize("shift", [-31, -12, -1, 0, 1, 3])
def test_a_layer_of_any_shift_gives_the_reference_s_output(shift):
    size = 1 << 26
    for multiplier in (1 << 30, (1 << 31) - 1, 1_777_777_777):
        constants = (np.array([multiplier] * 2, np.int32), np.array([shift, 2], np.int32), np.full(2, size, np.int64))
        made = requantization(*constants, "double", shifted=True)
        assert made.mode == "shifted"
        acc = near_halves(multiplier, shift, size)
        t = (2 * (acc << max(shift, 0)) * multiplier + (1 << 31)) >> 32
        s = -min(int(made.rounders[0]), 0)
        got = (t - ((t < 0) & (s > 0)) + ((1 << s) >> 1)) >> s  # VRSHL
        wanted = multiply_by_quantized_multiplier(acc, multiplier, shift, "double")
        np.testing.assert_array_equal(np.clip(got, -512, 511), np.clip(wanted, -512, 511))


def test_a_shift_of_0_needs_no_mode_of_its_own():
    multiplier, shift = np.array([1 << 30, 3 << 29], np.int32), np.array([0, -7], np.int32)
    made = requantization(multiplier, shift, np.full(2, 1 << 20, np.int64), "double")
    assert made.mode == "exact"
    acc = np.arange(-5000, 5000, dtype=np.int64)
    for channel in range(2):
        wanted = multiply_by_quantized_multiplier(acc, int(multiplier[channel]), int(shift[channel]), "double")
        got = vectors(acc, int(multiplier[channel]), int(made.rounders[channel]), "exact")
        np.testing.assert_array_equal(got, wanted)


def test_left_shifts_are_refused_by_name_of_the_channel():
    multiplier, size = np.full(3, 1 << 30, np.int32), np.full(3, 100, np.int64)
    with pytest.raises(ValueError, match="channel 2 has shift 1"):
        requantization(multiplier, np.array([-1, -3, 1], np.int32), size, "double")
    with pytest.raises(ValueError, match="channel 2 has shift 0"):
        requantization(multiplier, np.array([-2, -3, 0], np.int32), size, "single")
    with pytest.raises(ValueError, match="channel 2 has shift 25"):
        requantization(multiplier, np.array([-2, -3, 25], np.int32), size, "double", shifted=True)
