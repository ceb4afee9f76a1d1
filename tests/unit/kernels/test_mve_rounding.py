"""The MVE kernels' requantization in two multiplications, against the reference's, instruction by instruction."""

from __future__ import annotations

import numpy as np
import pytest

from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.kernels.mve.rounding import requantization

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


def test_left_shifts_are_refused_by_name_of_the_channel():
    multiplier, size = np.full(3, 1 << 30, np.int32), np.full(3, 100, np.int64)
    with pytest.raises(ValueError, match="channel 2 has shift 0"):
        requantization(multiplier, np.array([-1, -3, 0], np.int32), size, "double")
