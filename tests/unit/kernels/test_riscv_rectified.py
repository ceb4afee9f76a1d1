"""One rounding behind a ReLU gives what two give, for every sum that such a layer can have."""

from typing import Any

import numpy as np
import pytest

from stages.backends.riscv.kernels.riscv.rectified import is_rectified
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.ir.graph import LayerView
from tests.conformance.draw import Draw, with_constants
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.windows import around


def by_64_bits(acc: int, m: int, s: int, zero_point: int) -> int:
    """rectified.h on 64 bits; OverflowError where these do not hold it."""
    total = acc * m + (1 << 30) + ((2 * zero_point + 1) << (30 + s))
    return int(np.int64(total)) >> (31 + s)


def by_32_bits(acc: int, m: int, s: int, zero_point: int) -> int:
    """rectified.h on 32 bits; OverflowError where these do not hold it."""
    product, added = acc * (m << 1), np.int32((2 * zero_point + 1) << (s - 1))
    return int(np.int32((product >> 32) + (product >> 31 & 1) + int(added))) >> s


@pytest.mark.parametrize("compute", [by_64_bits, by_32_bits])
@pytest.mark.parametrize("zero_point", [-128, -1, 0, 3, 127, 255])
@pytest.mark.parametrize("s", [1, 2, 9, 20, 21])
def test_sums_at_every_half_give_the_reference(compute: Any, s: int, zero_point: int) -> None:
    """Within bounds that begin at the zero point; below it any result is as good."""
    for m in (1 << 30, (1 << 30) + 1, 1518500250, (1 << 31) - 1):
        halves = (np.arange(-3, 256 - zero_point) + 0.5) * 2.0 ** (31 + s) / m
        acc = (np.rint(halves).astype(np.int64)[:, None] + np.arange(-2, 3)).reshape(-1)
        acc = acc[np.abs(acc) < 1 << 30]
        scaled = multiply_by_quantized_multiplier(acc.astype(np.int32), np.array([m]), np.array([-s]), "double")
        expected = np.maximum(scaled + zero_point, zero_point)
        got = [max(compute(int(sum_), m, s, zero_point), zero_point) for sum_ in acc]
        np.testing.assert_array_equal(got, expected, f"multiplier {m}")


def layer(*, bias: int = 0, shift: int = -9, **fields: Any) -> LayerView:
    made = conv2d(Draw(1), around((3, 3), (1, 1), (4, 4), Draw(1)), 4, 4, **fields)
    every = {"bias": bias, "shift": shift, "multiplier": (1 << 31) - 1}
    return with_constants(made, **{name: np.full(4, value, np.int32) for name, value in every.items()})


RELU = {"output_zero_point": -5, "act_min": -5, "act_max": 127}


REACH = 36 * 255 * 128
ADDED = 9 << 8  # (2 * 5 - 1) * 2^(9 - 1)
LARGEST = (1 << 31) - 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"act_min": 3, "act_max": 9}, True),
        ({"act_min": -6}, False),  # results below the zero point
        *(({"shift": shift}, False) for shift in (0, 3, -29, -31)),  # scales that 32 bits are not for
        ({"bias": LARGEST - REACH - ADDED - 2}, True),
        ({"bias": LARGEST - ADDED}, False),  # sums that might leave 32 bits
        ({"bias": -(1 << 31)}, False),
    ],
)
def test_which_layers_are_rectified(fields: dict[str, int], expected: bool) -> None:
    assert is_rectified(layer(**RELU | fields)) is expected
