"""What products of matrices say they cost on Cortex-M55: near to what QEMU counts, whichever way rows are gathered."""

from __future__ import annotations

from typing import Any

from tests.support.emitted import target_named
from tests.support.estimates import counted

NAMES = ("mve.gemm_s8", "mve.dot_s8")
MOST = 0.1  # that estimates are off
CONV = {"op": "conv2d", "kernel": (3, 3)}
POINT = {"op": "conv2d"}
LAYERS: tuple[dict[str, Any], ...] = (
    {**POINT, "shape": (9, 9, 24), "out_channels": 40},  # a row left
    {**POINT, "shape": (9, 9, 24), "out_channels": 42},  # a block that overlaps the one before
    {**POINT, "shape": (10, 6, 40), "out_channels": 3},  # single columns
    {**POINT, "shape": (12, 12, 8), "out_channels": 16},  # one chunk
    {**CONV, "shape": (11, 13, 24), "out_channels": 24},  # strips
    {**CONV, "shape": (12, 12, 16), "out_channels": 8, "dtype": "uint8"},  # summed for the zero point of the weights
    {**CONV, "shape": (12, 12, 4), "out_channels": 16, "stride": (2, 2)},  # of few channels
    {**CONV, "shape": (14, 9, 1), "out_channels": 1},
    {**CONV, "shape": (12, 12, 16), "out_channels": 16, "stride": (3, 3)},  # rows one by one
    {**CONV, "shape": (10, 10, 16), "out_channels": 16, "dilation": (2, 2)},
    {**CONV, "shape": (10, 10, 32), "out_channels": 32, "groups": 4},
    {**CONV, "shape": (3, 3, 8), "out_channels": 20, "padding": "valid"},
    {"op": "fully_connected", "shape": (90,), "out_channels": 30},
    {"op": "fully_connected", "shape": (64,), "batch": 7, "out_channels": 24},
)


def test_estimates_are_near_to_counts() -> None:
    found = counted(LAYERS, target_named("cortex-m55"), NAMES)
    assert len(found) >= len(LAYERS)
    off = {which: said / count - 1 for which, (count, said) in found.items()}
    assert {which: by for which, by in off.items() if abs(by) > MOST} == {}
