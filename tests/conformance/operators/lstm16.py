"""Cases of LSTM on int16: from any state on, some steps."""

from collections.abc import Iterator

import numpy as np

from stages.ir.graph import LayerView
from tests.conformance.case import Case, case
from tests.conformance.draw import Draw, with_constants
from tests.conformance.operators.lstm import wide_lstm

BITS = 16
OPS = ("wide_lstm",)
_USUAL = {"batch": 1, "steps": 2, "depth": 5, "units": 3}


def drawn(draw: Draw) -> LayerView:
    return wide_lstm(draw, draw.choose(1, 1, 3), draw.integer(1, 5), draw.integer(1, 40), draw.integer(1, 9))


def mandatory() -> Iterator[Case]:
    """Each size of each axis; gates and cells of any values; sums as large as they get."""
    for axis, most in (("batch", 3), ("steps", 4), ("depth", 9), ("units", 6)):
        for size in range(1, most + 1):
            draw = Draw(size)
            layer = wide_lstm(draw, **_USUAL | {axis: size})
            yield case(f"{layer.op.op} {axis} {size}", draw, layer, "tails", "extremes")
    for number in range(7):
        draw = Draw(100 + number)
        layer = wide_lstm(draw, 1, 2, 1, 48)
        bias = draw.rng.integers(-(1 << 24), 1 << 24, (4, 48))
        still = {name: np.zeros_like(layer.constant(name)) for name in ("input_weights", "recurrent_weights")}
        yield case(f"wide_lstm functions {number}", draw, with_constants(layer, **still, bias=bias), "functions")
