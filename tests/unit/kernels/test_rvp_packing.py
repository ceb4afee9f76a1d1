"""The rvp kernels' short requantization is exact wherever packing chooses it; constants lie where they are read."""

from __future__ import annotations

import numpy as np
import pytest

from stages.backends.kernels.eight_bit import Range
from stages.backends.riscv.kernels.rvp import rounding
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from tests.support.rvp import compute

LOW, HIGH = -128, 127


def signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def instruction(name: str, a: int, b: int) -> int:
    """One lane of a P instruction, by the model of the specification."""
    return signed(compute(name, 32, rs1=a & 0xFFFFFFFF, rs2=b & 0xFFFFFFFF)[0])


def as_kernel(acc: int, multiplier: int, rounder: int, zero_point: int, *, wide: bool) -> int:
    """What gemm_s8.S and depthwise3x3_s8.S do with one accumulator, instruction by instruction."""
    t = instruction("kwmmul.u", acc, multiplier)
    if wide:
        t = signed(compute("sclip32", 32, rs1=instruction("kwmmul.u", t - (t < 0), rounder) & 0xFFFFFFFF, imm=14)[0])
    else:
        t = instruction("smmul.u", t, rounder)
    narrow = (t & 0xFFFF) + zero_point
    return int(np.clip((narrow + 0x8000 & 0xFFFF) - 0x8000, LOW, HIGH))


def near_halves(low: int, high: int, multiplier: int, shift: int, rng: np.random.Generator) -> np.ndarray:
    """Accumulators whose scaled value lies on a half or next to it, the bounds, and any others."""
    scale = multiplier / 2.0 ** (31 - shift)
    halves = rng.integers(-300, 300, 60) + 0.5
    close = np.round(halves / scale).astype(np.int64)[:, None] + np.arange(-2, 3)
    found = np.concatenate([close.ravel(), rng.integers(low, high + 1, 40), [low, high, 0, -1, 1]])
    return found[(found >= low) & (found <= high)]


@pytest.mark.parametrize("shift", range(-31, 0))
def test_both_roundings_equal_the_reference_for_every_shift(shift):
    rng = np.random.default_rng(-shift)
    chosen = {"short": 0, "wide": 0}
    for multiplier in (1 << 30, (1 << 31) - 1, *rng.integers(1 << 30, 1 << 31, 3)):
        for reach in (1, 100, 1 << 14, 1 << 22, 1 << 29):
            middle = int(rng.integers(-reach, reach)) * int(rng.integers(0, 2))
            low, high = max(middle - reach, -(1 << 31)), min(middle + reach, (1 << 31) - 1)
            m, s = np.array([multiplier], np.int32), np.array([shift], np.int32)
            rounder = rounding.rounders(m, s, Range(np.array([low]), np.array([high])))
            zero_point = int(rng.integers(-128, 128))
            acc = near_halves(low, high, int(multiplier), shift, rng)
            scaled = multiply_by_quantized_multiplier(acc, m, s, "double")
            expected = np.clip(scaled + zero_point, LOW, HIGH)
            for kind, values in (("short", rounder.short), ("wide", rounder.wide)):
                if values[0] < 0:
                    continue
                chosen[kind] += 1
                wide = kind == "wide"
                got = [as_kernel(int(a), int(multiplier), int(values[0]), zero_point, wide=wide) for a in acc]
                np.testing.assert_array_equal(got, expected, f"{kind} shift {shift} range [{low}, {high}]")
    assert chosen["wide"] == 25
    assert shift == -1 or chosen["short"] > 5, "the short way must be usual, or it gains nothing"


@pytest.mark.parametrize("shift", range(-31, -1))
def test_rounding_once_equals_the_reference(shift):
    rng = np.random.default_rng(-shift)
    for multiplier in rng.integers(1 << 30, 1 << 31, 4):
        m, s = np.array([multiplier], np.int32), np.array([shift], np.int32)
        rounder = rounding.rounders_once(m, s, Range(np.array([-(1 << 15)]), np.array([1 << 15])))
        acc = near_halves(-(1 << 15), 1 << 15, int(multiplier), shift, rng)
        expected = np.clip(multiply_by_quantized_multiplier(acc, m, s, "single"), LOW, HIGH)
        high = [int(a) * int(multiplier) >> 32 for a in acc]  # smmul
        ways = [("kwmmul.u", int(rounder.wide[0]))] + [("smmul.u", int(p)) for p in rounder.short if p >= 0]
        for name, p in ways:
            got = np.clip([instruction(name, t, p) for t in high], LOW, HIGH)
            np.testing.assert_array_equal(got, expected, f"{name} shift {shift}")
