"""The nearest floor to exact roundings: counted right, within the engine's bits, and as good as trying everything."""

import numpy as np
import pytest

from stages.backends.accelerators.floor_rounding import (
    Breakpoints,
    MultiplierLimits,
    breakpoints,
    nearest,
    sum_of_two,
)
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, scale_and_floor
from stages.ir.operators.arithmetic import Add
from tests.conformance.draw import Draw, image, view
from tests.conformance.operators import add


def exact(multiplier: int, shift: int, zero_point: int, sums: np.ndarray) -> np.ndarray:
    return np.clip(multiply_by_quantized_multiplier(sums, multiplier, shift, "double") + zero_point, 0, 255)


def one_channel(multiplier: int, shift: int, zero_point: int, least: int, most: int) -> Breakpoints:
    real = np.array([multiplier * 2.0 ** (shift - 31)])
    ends = (np.array([least]), np.array([most]))
    return breakpoints(lambda sums: exact(multiplier, shift, zero_point, sums), 0, 255, zero_point, *ends, real)


CHANNELS = [
    (1518500250, -5, 20, -3000, 5000),
    (1 << 30, -4, 128, -2000, 2000),  # a power of two
    (1999999999, -1, 0, -300, 400),
    (1300000000, -7, 255, -20000, 1000),
    (1300000000, -12, 100, -200, 300),  # one result, whatever the sum
    (1700000001, 0, 5, -40, 60),  # nearly one sum for each result
    (1200000000, -9, 128, 100, 30000),  # no sum near zero
]


@pytest.mark.parametrize("bits", [16, 20, 32])
@pytest.mark.parametrize("channel", CHANNELS)
def test_differences_are_counted_over_all_sums(channel: tuple[int, ...], bits: int) -> None:
    multiplier, shift, zero_point, least, most = channel
    limits, sums = MultiplierLimits(multiplier=0xFFFF, bits=bits), np.arange(least, most + 1)
    magnitude = np.array([max(abs(least), abs(most))])
    if (bits, magnitude[0]) == (16, 30000):
        with pytest.raises(ValueError, match="no bits for a multiplier"):
            nearest(one_channel(*channel), magnitude, limits)
        return
    found = nearest(one_channel(*channel), magnitude, limits)
    made = scale_and_floor(sums, found.multiplier[0], found.offset[0], found.shift[0]) + zero_point
    apart = np.abs(np.clip(made, 0, 255) - exact(multiplier, shift, zero_point, sums))
    assert (int(apart.sum()), int(apart.max())) == (found.differing[0], found.largest[0])
    assert found.reachable[0] == len(sums)
    totals = sums * found.multiplier[0] + found.offset[0] + (zero_point << found.shift[0])
    assert np.abs(totals).max() < 1 << bits - 1
    assert found.multiplier[0] * magnitude[0] < 1 << bits - 1


@pytest.mark.parametrize("op", ["add", "sub"])
@pytest.mark.parametrize("seed", range(4))
def test_sums_of_two_are_counted_over_all_pairs(op: str, seed: int) -> None:
    draw = Draw(seed, ("int8", "uint8")[seed % 2])
    made = add.add(draw, [(1 << 16,)] * 2, op=op)
    found = sum_of_two(made, MultiplierLimits(multiplier=0xFFFF))
    first, second = found.weights
    assert min(first, second) > 0 and (first + second if op == "sub" else max(first, second)) <= 255
    fields = {
        "rounding": "floor", "left_shift": 0, "multipliers": found.weights, "shifts": (0, 0),
        "output_multiplier": found.multiplier, "output_offset": found.offset, "output_shift": found.shift,
    }  # fmt: skip
    pairs = [x.reshape(-1) for x in np.meshgrid(*[np.arange(256, dtype=np.uint8).view(draw.dtype)] * 2)]
    own = view(Add.model_validate(made.op.model_dump() | fields), list(made.inputs), image("y", (1 << 16,), draw.dtype))
    ours, theirs = own.op.compute(own, *pairs), made.op.compute(made, *pairs)
    apart = np.abs(ours.astype(int) - theirs.astype(int))
    assert (int((apart > 0).sum()), int(apart.max())) == (found.differing, found.largest)
    assert found.reachable == 1 << 16 and found.differing < 1 << 11
