"""The arm_dsp kernels' requantization is exact wherever rounding.py gives a rounder; packed words hold the weights."""

from __future__ import annotations

import numpy as np
import pytest

from stages.kernels.arm_dsp import base, packing, rounding
from stages.kernels.eight_bit import Range
from stages.reference.integer.fixed_point import multiply_by_quantized_multiplier

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


def test_a_channel_that_cannot_be_rounded_is_named():
    m, s = np.array([1 << 30, 1 << 30], np.int32), np.array([-5, 0], np.int32)
    reach = Range(np.array([-1000, -1000]), np.array([1000, 1000]))
    with pytest.raises(ValueError, match="channel 1 has shift 0"):
        rounding.rounders(m, s, reach, "double")


def arithmetic(weights: np.ndarray, zero_point: int, size: int) -> base.Arithmetic:
    zeros = np.zeros(len(weights), np.int64)
    factors = zeros.astype(np.int32)
    return base.Arithmetic(weights, zero_point, zeros, factors, factors, Range(zeros - size, zeros + size))


@pytest.mark.parametrize(("weight", "zero_point", "size", "form"), [
    (-127, 0, (1 << 23) - 1, "ab"), (-128, 0, 100, "bytes"), (-127, 0, 1 << 23, "bytes"), (5, 3, 100, "bytes"),
])  # fmt: skip
def test_ab_is_taken_only_where_it_is_exact(weight, zero_point, size, form):
    """256 * -128 - 1 leaves int16, 256 * 2^23 int32."""
    made = arithmetic(np.array([[-1], [weight]]), zero_point, size)
    assert packing.form(made, packing.channel_pairs(2)) == form


def test_words_multiply_as_the_kernel_takes_them_apart():
    """The dot product of a row with every channel, from packed words, by what SMLAD and SXTB16 do."""
    rng = np.random.default_rng(0)
    depth, channels, run = 22, 5, 11
    weights, x = rng.integers(-127, 128, (channels, depth)), rng.integers(-128, 128, depth)
    steps, pairs = packing.depth_steps(depth, run), packing.channel_pairs(channels)
    panel = np.where(steps < 0, 99, x[steps])  # what stands behind a run's end must not count
    for form in ("ab", "bytes"):
        words = packing.weight_words(weights, steps, pairs, form)
        halves = words.view(np.int16).reshape(*words.shape, 2).astype(np.int64)
        low = words.view(np.int8).reshape(*words.shape, 4)[..., ::2].astype(np.int64)
        high = words.view(np.int8).reshape(*words.shape, 4)[..., 1::2].astype(np.int64)
        a = (low * panel).sum((1, 2))
        b = ((halves * panel).sum((1, 2)) - a) >> 8 if form == "ab" else (high * panel).sum((1, 2))
        np.testing.assert_array_equal(np.stack([a, b], 1), (weights @ x)[pairs])
