"""What products of matrices say they cost on RISC-V P: near to what Spike counts, whichever way rows are gathered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.emitted import target_named
from tests.support.estimates import counted

NAMES = ("rvp.gemm_s8", "rvp.dot_s8")
ROUNDED = ("rvp.gemm_s8", "rvp.pointwise_s8", "rvp.few_inputs_s8", "rvp.direct_s8")
MOST = 0.1  # that estimates are off
CONV = {"op": "conv2d", "kernel": (3, 3)}
POINT = {"op": "conv2d"}
LAYERS: tuple[dict[str, Any], ...] = (
    {**POINT, "shape": (9, 9, 24), "out_channels": 40},  # whole registers, a row left
    {**POINT, "shape": (9, 9, 20), "out_channels": 40, "activation": "relu6"},  # whole words, rounded once
    {**POINT, "shape": (7, 7, 15), "out_channels": 21},  # any bytes, and joined
    {**POINT, "shape": (2, 1, 33), "out_channels": 16},  # two rows
    {**POINT, "shape": (6, 6, 24), "out_channels": 16, "dtype": "uint8"},
    {**CONV, "shape": (11, 13, 16), "out_channels": 24},  # long rows of registers, on every border
    {**CONV, "shape": (11, 13, 7), "out_channels": 24, "padding": "valid"},
    {**CONV, "shape": (12, 12, 3), "out_channels": 16, "stride": (2, 2)},  # nine bytes
    {**CONV, "shape": (12, 16, 3), "out_channels": 16, "dtype": "uint8"},  # and made int8
    {**CONV, "shape": (14, 9, 1), "out_channels": 8},
    {**CONV, "shape": (10, 10, 16), "out_channels": 16, "dilation": (2, 2)},  # taps apart
    {**CONV, "shape": (10, 10, 32), "out_channels": 32, "groups": 4},
    {**POINT, "shape": (12, 12, 60), "out_channels": 15, "groups": 3},  # five columns each
    {**CONV, "shape": (3, 3, 8), "out_channels": 20, "padding": "valid"},  # a single pixel
    {"op": "fully_connected", "shape": (90,), "out_channels": 30},
    {"op": "fully_connected", "shape": (64,), "batch": 7, "out_channels": 24},
)


@pytest.mark.parametrize("target_name", ["rv64-rvp", "rv32-rvp"])
def test_estimates_are_near_to_counts(target_name: str) -> None:
    found = counted(LAYERS, target_named(target_name), NAMES)
    assert len(found) >= len(LAYERS)
    off = {which: said / count - 1 for which, (count, said) in found.items()}
    assert {which: by for which, by in off.items() if abs(by) > MOST} == {}


@pytest.mark.parametrize("target_name", ["rv64-rvp", "rv32-rvp"])
def test_one_rounding_saves_what_estimates_say(target_name: str) -> None:
    """Layers of networks have a RELU as a rule, those of the grid none. Some blocks may still round twice."""
    target = target_named(target_name)
    layers = (
        {**POINT, "shape": (12, 12, 8), "out_channels": 32},
        {**POINT, "shape": (12, 12, 12), "out_channels": 32},
        {**CONV, "shape": (16, 16, 16), "out_channels": 16},
    )
    twice = counted(layers, target, ROUNDED)
    once = counted([{**layer, "activation": "relu"} for layer in layers], target, ROUNDED)
    assert twice.keys() == once.keys() and {which[1].split()[0] for which in twice} == {*ROUNDED}
    for which, (count, said) in twice.items():
        saved, foretold = count - once[which][0], said - once[which][1]
        assert 0 < saved < 1.2 * foretold < 3 * saved, which
