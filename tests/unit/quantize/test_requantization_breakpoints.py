"""Multipliers equal to the scaling of ONNX Runtime's integer operators."""

from __future__ import annotations

import numpy as np
import pytest

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.quantize.arithmetic import quantize_multiplier
from stages.quantize.requantization_breakpoints import exact, scaled


def test_results_are_products_in_float32_with_halves_to_even() -> None:
    sums = np.array([1, 3, 5, -1, -3, 2**24 + 1])
    assert scaled(sums, np.float32(0.5)).tolist() == [0, 2, 2, 0, -2, 2**23]


def results(sums: np.ndarray, multipliers: np.ndarray, shift: int, rounding: str) -> np.ndarray:
    """Result of each multiplier for each sum, [multipliers, sums]."""
    return np.array(
        [multiply_by_quantized_multiplier(sums, int(multiplier), shift, rounding) for multiplier in multipliers]
    )


@pytest.mark.parametrize(
    ("ends", "scales"),
    [
        # Ranges without a tie above zero, so that one multiplier can round all sums: the tie at -0.5 decides.
        ((-40, 3), [2.0**-3, 2.0**-4, 2.0**-5, 3 * 2.0**-6, 0.75, 0.5]),
        ((-2, 1), [2.0**-2, 0.5]),
        ((-8, 0), [2.0**-4, 2.0**-5, 2.0**-3]),
        ((0, 8), [2.0**-4, 2.0**-3]),
        ((-1000, 1000), list(np.random.default_rng(0).uniform(2.0**-9, 2.0**-3, 12))),
        ((252, 260), [0.5]),  # 126.5 decides, below the largest result
    ],
)
def test_a_multiplier_is_exact_for_every_sum_and_is_found_where_there_is_one(
    ends: tuple[int, int], scales: list[float]
) -> None:
    sums = np.arange(ends[0], ends[1] + 1)
    for scale in np.array(scales, np.float32):
        fixed = quantize_multiplier(float(scale))
        wanted = np.clip(scaled(sums, scale), -128, 127)
        solution = exact(np.array([scale]), np.array(ends)[:, None], [fixed], -128, 127)
        if solution is None:
            near = np.linspace(-(2**22), 2**22, 2001).astype(np.int64) + fixed[0]
            near = np.concatenate([near, fixed[0] + np.arange(-50, 51)]).clip(2**30, 2**31 - 1)
            for rounding in ("double", "single"):
                ours = np.clip(results(sums, near, fixed[1], rounding), -128, 127)
                assert not (ours == wanted).all(axis=1).any(), (scale, rounding)
        else:
            rounding, ((multiplier, shift),) = solution
            ours = np.clip(multiply_by_quantized_multiplier(sums, multiplier, shift, rounding), -128, 127)
            assert np.array_equal(ours, wanted), (scale, rounding)


@pytest.mark.parametrize(
    ("scale", "shift", "most", "expected"),
    [
        (1.3, 1, 20, False),
        (0.93, 0, 20, True),
        (1.7 * 2.0**-23, -22, 2**24, True),
        (1.3 * 2.0**-24, -23, 2**24, False),
    ],
)
def test_shifts_to_the_right_by_up_to_22(scale: float, shift: int, most: int, expected: bool) -> None:
    fixed = quantize_multiplier(scale)
    assert fixed[1] == shift
    solution = exact(np.array([scale], np.float32), np.array([[-most], [most]]), [fixed], -128, 127)
    assert (solution is not None) == expected
    if solution is not None:
        rounding, ((multiplier, _),) = solution
        sums = np.unique(np.linspace(-most, most, 20_001).astype(np.int64))
        ours = multiply_by_quantized_multiplier(sums, multiplier, shift, rounding)
        assert np.array_equal(ours, scaled(sums, np.float32(scale)))


def test_most_scales_of_networks_have_an_exact_multiplier() -> None:
    random = np.random.default_rng(0)
    scales = random.uniform(2.0**-11, 2.0**-6, 32).astype(np.float32)
    fixed = [quantize_multiplier(float(scale)) for scale in scales]
    ends = np.array([[-60_000], [60_000]])
    solutions = [exact(scales[at : at + 1], ends, fixed[at : at + 1], -128, 127) for at in range(32)]
    assert sum(solution is not None for solution in solutions) >= 28
    # Of several channels each gets its own, all with one rounding.
    same = [at for at, solution in enumerate(solutions) if solution is not None and solution[0] == "double"]
    together = exact(scales[same], np.repeat(ends, len(same), 1), [fixed[at] for at in same], -128, 127)
    assert together == ("double", [solutions[at][1][0] for at in same])


def test_there_is_none_for_halves_that_go_to_even() -> None:
    """1 x 0.5 is 0 and 3 x 0.5 is 2: no multiplier gives both."""
    assert exact(np.array([0.5], np.float32), np.array([[-9], [9]]), [quantize_multiplier(0.5)], -128, 127) is None
