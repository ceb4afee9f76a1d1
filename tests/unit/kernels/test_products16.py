"""Layers on 16-bit activations: factors that round as float64 does, and when sums of 32 bits suffice."""

from __future__ import annotations

import numpy as np
import pytest

from stages.backends.kernels.plan16 import FINE, LONG, Tile, plan
from stages.backends.kernels.scales16 import scaled, scales
from stages.ir.arithmetic.fixed_point import round_half_away
from stages.ir.graph import LayerView
from tests.conformance.draw import Draw, with_constants, with_op
from tests.conformance.operators.sixteen import fully_connected

TILE = Tile(rows=4, channels=2, pair=2, step=2, paired=True, sum_bytes=4, direct=4)
INT32 = np.iinfo(np.int32)


def dense(real: float, depth: int = 8, weight: int = 1) -> LayerView:
    drawn = (fully_connected(Draw(seed, "int16"), depth) for seed in range(99))
    layer = next(layer for layer in drawn if "bias" in layer.layer.constants)
    weights = np.full_like(layer.constant("weights"), weight)
    units = len(weights)
    layer = with_op(layer, act_min=-(1 << 15), act_max=(1 << 15) - 1)
    return with_constants(layer, real=np.full(units, real), weights=weights, bias=np.zeros(units, np.int64))


@pytest.mark.parametrize("real", [0.25, 0.4999, 1 / 3, 2.0**-12, 3.1e-4, 1e-5, 2.0**-16, 1e-9])
def test_a_factor_rounds_as_the_float64_product(real: float) -> None:
    layer = dense(real)
    factor = int(scales(layer, layer.op.units)[0])
    firsts = np.ceil((np.arange(-(1 << 15), (1 << 15) + 1) - 0.5) / real).clip(INT32.min, INT32.max).astype(np.int64)
    totals = np.concatenate([firsts + beside for beside in (-1, 0, 1)]).clip(INT32.min, INT32.max)
    totals = np.concatenate([totals, np.random.default_rng(0).integers(INT32.min, INT32.max, 100_000)])
    ours, theirs = scaled(totals, factor), round_half_away(totals * np.float64(real))
    low, high = -(1 << 15), (1 << 15) - 1
    assert (ours.clip(low, high) == theirs.clip(low, high)).all()


@pytest.mark.parametrize("real", [0.5, 3.0])
def test_scales_from_a_half_on_are_refused(real: float) -> None:
    layer = dense(real)
    with pytest.raises(ValueError, match="below 1/2"):
        scales(layer, layer.op.units)


def test_a_product_that_float64_rounds_to_halves_is_refused() -> None:
    layer = dense(7 / 640)
    with pytest.raises(ValueError, match="no 64-bit factor"):
        scales(layer, layer.op.units)


@pytest.mark.parametrize(
    ("depth", "weight", "mode", "chunk"),
    [
        (500, 127, FINE, 500),
        (516, 127, FINE, 516),
        (518, 127, LONG, 260),
        (2000, 127, LONG, 500),
        (2000, 32, FINE, 2000),
    ],
)
def test_sums_of_32_bits_are_as_deep_as_the_weights_allow(depth: int, weight: int, mode: int, chunk: int) -> None:
    made = plan(dense(1 / 3, depth, weight), TILE)
    assert (made.mode, made.chunk) == (mode, chunk)


def test_a_bias_beyond_32_bits_is_added_in_64_and_refused_where_its_results_are_not_clamped() -> None:
    layer = dense(1 / 3)
    far = with_constants(layer, bias=np.full(len(layer.constant("weights")), 1 << 33))
    assert plan(far, TILE).mode == LONG
    with pytest.raises(ValueError, match="unclamped results"):
        plan(with_constants(far, real=np.full(len(layer.constant("weights")), 1e-6)), TILE)
