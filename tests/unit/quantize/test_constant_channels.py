"""Constant channels are distinguished from others exactly."""

import numpy as np
import pytest

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.quantize.constant_channels import fold_constant_channels

LIVE = (1 << 30, -4)


def fold(taps: list[int], bias: int, multiplier: int, shift: int, zero_point: int = 0):
    """Fold channel 0 beside a live channel 1; inputs are int8 with this zero point."""
    weights = np.array([taps, [5] * len(taps)], np.int8).reshape(2, 1, 1, -1)
    constants = {
        "multiplier": np.array([multiplier, LIVE[0]], np.int32),
        "shift": np.array([shift, LIVE[1]], np.int32),
        "bias": np.array([bias, 7], np.int32),
    }
    return weights, fold_constant_channels(weights, constants, "int8", zero_point, 0), constants


@pytest.mark.parametrize("bias", [0, 1 << 30, -(1 << 30)])
def test_constant_channel_keeps_its_number(bias: int) -> None:
    weights, folded, constants = fold([127, -127], bias, (1 << 31) - 1, -25)
    expected = int(multiply_by_quantized_multiplier(bias, (1 << 31) - 1, -25, "double"))
    assert abs(expected) == (32 if bias else 0)
    assert not folded[0].any()
    now = multiply_by_quantized_multiplier(constants["bias"], constants["multiplier"], constants["shift"], "double")
    assert now[0] == expected
    assert constants["shift"].min() >= -8
    assert (folded[1] == weights[1]).all() and constants["bias"][1] == 7
    assert (constants["multiplier"][1], constants["shift"][1]) == LIVE


def test_the_boundary_is_exact() -> None:
    # One tap of 1: sums are -128 to 127. Times 2^-9 they stay below a half, but -128 * 2^-8 is a half, rounded away.
    _, below, _ = fold([1], 0, 1 << 30, -8)
    assert not below[0].any()
    _, at, constants = fold([1], 0, 1 << 30, -7)
    assert at[0].any() and constants["shift"][0] == -7


@pytest.mark.parametrize(
    ("zero_point", "bias", "constant"), [(127, 0, True), (127, -1, False), (-128, -1, True), (-128, 0, False)]
)
def test_inputs_count_from_their_zero_point(zero_point: int, bias: int, constant: bool) -> None:
    # One tap of 1 times 2^-9 in two roundings: sums from -255 to 254 give 0, and -256 and 255 do not.
    _, folded, _ = fold([1], bias, 1 << 30, -8, zero_point)
    assert folded[0].any() != constant


def test_one_multiplier_for_all_channels_stays_one() -> None:
    weights, folded, constants = fold([0], 3, *LIVE)
    assert folded is weights
    assert constants["bias"][0] == 3
