"""One multiplication gives what two roundings give, for every sum that a channel can have."""

import numpy as np
import pytest

from stages.backends.kernels.eight_bit import Range
from stages.backends.riscv.kernels.rvp.one_rounding import one_rounding
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.ir.layers import Rounding


def outputs_of(acc: np.ndarray, m: int, d: int, point: int, bounds: tuple[int, int]) -> np.ndarray:
    """As the kernels compute: smmul.u, 16 bits that wrap, saturation, bounds."""
    product = ((acc + d) * m + (1 << 31)) >> 32
    half = product.astype(np.int32).astype(np.int16) + np.int16(point)
    return np.asarray(np.clip(np.clip(half.astype(np.int64), -128, 127), *bounds))


def reference(
    acc: np.ndarray, m: np.int32, shift: np.int32, zero_point: int, bounds: tuple[int, int], how: Rounding
) -> np.ndarray:
    scaled = multiply_by_quantized_multiplier(acc, np.array([m]), np.array([shift]), how)
    return np.asarray(np.clip(scaled + zero_point, *bounds))


def beside_steps(m: int, s: int, zero_point: int, bounds: tuple[int, int]) -> np.ndarray:
    """Sums at the halves between the outputs within the bounds, and one and two beside each; not by `steps`."""
    halves = np.arange(bounds[0], bounds[1] + 1) - zero_point + 0.5
    return (np.rint(halves * 2.0 ** (31 + s) / m).astype(np.int64)[:, None] + np.arange(-2, 3)).reshape(-1)


@pytest.mark.parametrize("how", ["double", "single"])
@pytest.mark.parametrize("zero_point", [-128, -127, -1, 0, 5, 127])
def test_sums_at_every_half_and_at_their_ends_give_the_reference(how: Rounding, zero_point: int) -> None:
    """Ends of the sums at and beside halves, near 0, at those of int32; bounds of ReLUs, others, and of one step."""
    rng, taken = np.random.default_rng(zero_point + 128), 0
    for bounds in {
        (-128, 127),
        (zero_point, 127),
        (-128, zero_point),
        (max(zero_point - 3, -128), min(zero_point + 3, 127)),
        (-7, 6),
        (9, 10),
    }:
        for s in range(1, 21):
            multiplier = np.array([1 << 30, (1 << 30) + 1, (1 << 31) - 1, rng.integers(1 << 30, 1 << 31)], np.int32)
            near = [beside_steps(int(m), s, zero_point, bounds) for m in multiplier]
            for some in (
                near,
                [edge[edge > 0] for edge in near],
                [edge[edge < 0] for edge in near],
                [edge[:10] for edge in near],
            ):
                if any(edge.size == 0 for edge in some):
                    continue
                ends = np.sort([np.clip(rng.choice(edge, 2), -(1 << 31), (1 << 31) - 1) for edge in some], axis=1)
                ends[0] = rng.choice([-(1 << 31), -9, 0]), rng.choice([0, 9, (1 << 31) - 1])
                made = one_rounding(multiplier, np.full(4, -s, np.int32), Range(*ends.T), zero_point, bounds, how)
                for channel in np.flatnonzero(made.multiplier >= 0):
                    low, high = ends[channel]
                    acc = np.concatenate([near[channel], [low, low + 1, -1, 0, 1, high - 1, high]])
                    acc = acc[(acc >= low) & (acc <= high)]
                    m, d, point = (int(part[channel]) for part in (made.multiplier, made.bias, made.zero_point))
                    assert m < 1 << 31 and low + d >= -(1 << 31) and high + d < 1 << 31
                    expected = reference(acc, multiplier[channel], np.int32(-s), zero_point, bounds, how)
                    got = outputs_of(acc, m, d, point, bounds)
                    np.testing.assert_array_equal(got, expected, f"{bounds}, shift {-s}, {low} to {high}")
                    taken += 1
    assert taken > 500
