"""TIR of PRELU's arithmetic."""

from collections.abc import Sequence
from typing import Any

from stages.backends.kernels.tir.fixed_point import requantize, select, widen


def rectified(op: Any, elements: Sequence[Any]) -> Any:
    """Return the requantized value from zero on, or its product with the slope below.

    Zero point and bounds of the output are not applied.
    """
    plain, slope = (widen(x) - op.zero_points[n] for n, x in enumerate(elements))
    above = requantize(plain, op.multipliers[0], op.shifts[0], op.rounding)
    below = requantize(plain * slope, op.multipliers[1], op.shifts[1], op.rounding)
    return select(plain >= 0, above, below)
