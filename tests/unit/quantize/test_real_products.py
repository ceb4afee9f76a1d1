"""FULLY_CONNECTED multiplies by a real number; its layers have integers that give the same, on halves too."""

from __future__ import annotations

import numpy as np
import pytest

from stages.fixed_point import multiply_by_quantized_multiplier, round_half_away
from stages.models.builder import ModelBuilder
from stages.quantize.arithmetic import LIMITS, quantize_multiplier
from stages.quantize.patterns import convolution
from stages.quantize.real_products import Product, settled
from tests.support.integer import compare


@pytest.mark.parametrize("real", [1 / 2, 1 / 6, 3 / 14, 2.0**-9, 1 / 200, 1 / 3, 0.0123, 1.5])
@pytest.mark.parametrize("ends", [(-40_000, 40_000), (3, 900), (-900, -3), (0, 0)])
def test_the_settled_multiplier_is_exact_for_every_sum(real: float, ends: tuple[int, int]) -> None:
    low, high = -131, 124
    fixed = Product(real, *ends, low, high).settled(quantize_multiplier(real))
    assert fixed is not None
    sums = np.arange(ends[0], ends[1] + 1)
    expected = np.clip(round_half_away(sums * np.float64(real)), low, high)
    assert (np.clip(multiply_by_quantized_multiplier(sums, *fixed, "single"), low, high) == expected).all()


def test_what_is_exact_stays_and_no_multiplier_is_told() -> None:
    real = 0.0123
    assert Product(real, -900, 900, -128, 127).settled(quantize_multiplier(real)) == quantize_multiplier(real)
    # float64 rounds some products of 7/640 to a half and others to just below: no one number does.
    assert Product(7 / 640, -40_000, 40_000, -128, 127).settled(quantize_multiplier(7 / 640)) is None
    assert (
        Product(np.e * 2.0**-20, -(1 << 30), 1 << 30, -128, 127).settled(quantize_multiplier(np.e * 2.0**-20)) is None
    )


def test_units_of_one_multiplier_keep_one() -> None:
    fixed = [quantize_multiplier(real) for real in (0.5, 0.5, 0.0123)]
    made = settled(fixed, [0.5, 0.5, 0.0123], np.array([[-9, 0, -9], [9, 7, 9]]), -128, 127)
    assert made[0] == made[1] != fixed[0]
    assert made[2] == fixed[2]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_halves_of_layers_are_litert_s(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = LIMITS[dtype]
    others = 0
    for number in range(16):
        rng = np.random.default_rng(number)
        depth, units = int(rng.choice([1, 8, 64, 300])), int(rng.choice([1, 5, 32]))
        scale, quotient = float(rng.choice([0.5, 0.1, 1 / 16])), int(rng.choice([6, 10, 14, 24, 64, 100, 512, 1000]))
        many = dtype == "int8" and number % 2 == 1
        weight_scale = [float(value) for value in rng.choice([1.0, 0.5, 0.75, 1 / 3], units)] if many else 1.0
        builder = ModelBuilder()
        x = builder.input("x", (64, depth), dtype, scale, int(rng.integers(low, high + 1)))
        weights = rng.integers(low, high + 1, (units, depth)).astype(dtype)
        options = {"weight_scale": weight_scale, "weight_zero_point": 0 if dtype == "int8" else 119}
        bias = rng.integers(-20_000, 20_000, units).astype(np.int32) if number % 3 else None
        out = (float(np.float32(scale * quotient)), int(rng.integers(low, high + 1)))
        builder.output(builder.fully_connected(x, weights, bias, out=out, **options))
        data, inputs = builder.build(), [rng.integers(low, high + 1, (64, depth)).astype(dtype)]
        assert compare(data, inputs).wrong == {}
        with monkeypatch.context() as patch:
            patch.setattr(convolution, "settled", lambda fixed, *_: fixed)
            others += len(compare(data, inputs).wrong)
    assert others > 0


def test_a_product_just_below_a_half_is_no_half() -> None:
    # 31 bits make it 1/2, and the multiplier below that has another shift.
    real = float(np.nextafter(0.5, 0))
    assert Product(real, 0, 1, -8, 8).settled(quantize_multiplier(real)) is None
