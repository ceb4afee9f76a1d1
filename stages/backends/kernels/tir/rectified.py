"""TIR of PRELU's arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stages.backends.kernels.tir.fixed_point import requantize, select, widen


def rectified(op: Any, elements: Sequence[Any]) -> Any:
    """A value from zero on, or times its slope below, requantized: all but the output's zero point and its bounds."""
    plain, slope = (widen(x) - op.zero_points[n] for n, x in enumerate(elements))
    above = requantize(plain, op.multipliers[0], op.shifts[0], op.rounding)
    below = requantize(plain * slope, op.multipliers[1], op.shifts[1], op.rounding)
    return select(plain >= 0, above, below)
