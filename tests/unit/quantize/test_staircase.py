"""Multipliers that scale sums as ONNX Runtime's integer operators do."""

from __future__ import annotations

import numpy as np

from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.quantize.arithmetic import quantize_multiplier
from stages.quantize.staircase import exact, scaled


def test_results_are_products_in_float32_with_halves_to_even() -> None:
    sums = np.array([1, 3, 5, -1, -3, 2**24 + 1])
    assert scaled(sums, np.float32(0.5)).tolist() == [0, 2, 2, 0, -2, 2**23]


def test_a_multiplier_that_is_found_is_exact_for_every_sum() -> None:
    random = np.random.default_rng(0)
    ends, sums = np.array([[-60_000], [60_000]]), np.arange(-60_000, 60_001)
    found = 0
    for scale in random.uniform(2.0**-11, 2.0**-6, 32).astype(np.float32):
        made = exact(np.array([scale]), ends, [quantize_multiplier(float(scale))], -128, 127)
        if made is None:
            continue
        rounding, ((multiplier, shift),) = made
        ours = multiply_by_quantized_multiplier(sums, multiplier, shift, rounding)
        assert np.array_equal(np.clip(ours, -128, 127), np.clip(scaled(sums, scale), -128, 127))
        found += 1
    assert found >= 28


def test_there_is_none_for_halves_that_go_to_even() -> None:
    """1 x 0.5 is 0 and 3 x 0.5 is 2: no multiplier gives both."""
    assert exact(np.array([0.5], np.float32), np.array([[-9], [9]]), [quantize_multiplier(0.5)], -128, 127) is None
