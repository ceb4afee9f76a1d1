"""Interpolation tables for functions of 16-bit activations, equal to LiteRT's."""

from collections.abc import Callable

import numpy as np

from stages.ir.arithmetic.fixed_point import round_half_away
from stages.ir.arrays import Array
from stages.quantize.arithmetic import Fixed, quantize_multiplier

_ENTRIES = 512
_RANGE = 10.0  # differences are clamped to it
_LARGEST = 32767.0


def sigmoid_scaling(scale: float) -> Fixed:
    """Multiplier and right shift that map 1.0 to 3 * 4096: 15 bits, truncated (SigmoidPrepare)."""
    real, shift = scale * 4096.0 * 3.0, 0
    while real <= _LARGEST / 2.0 and shift <= 30:
        real, shift = real * 2.0, shift + 1
    return int(real), shift


def exponential_table() -> Array:
    """exp of -10 to 0 in Q0.15, int32[513]."""
    return _line_table(np.exp, -_RANGE, 0.0)


def reciprocal_table() -> Array:
    """1 / (1 + x) of 0 to 1 in Q0.15, int32[513]."""
    return _line_table(lambda x: 1 / (1 + x), 0.0, 1.0)


def difference_scaling(scale: float, beta: float) -> Fixed:
    """Multiplier and shift from differences to the table of exponentials.

    Raises ValueError for scales that are too large.
    """
    multiplier, shift = quantize_multiplier(scale * beta / (_RANGE / 65535.0))
    if shift > 13:
        raise ValueError(f"beta * scale is {beta * scale:g}; it must not be above 1.25")
    return multiplier, shift


def _line_table(function: Callable[[Array], Array], low: float, high: float) -> Array:
    """Entries at equal steps, lowered by half of the line's error in the middle (LUTPopulate)."""
    step = (high - low) / _ENTRIES
    at = low + np.arange(_ENTRIES) * step
    here, ahead, middle = (function(x) * 32768.0 for x in (at, low + np.arange(1, _ENTRIES + 1) * step, at + step / 2))
    entries = round_half_away(here)
    error = round_half_away((ahead + entries) / 2.0) - round_half_away(middle)
    last = round_half_away(function(np.array([high])) * 32768.0)
    table: Array = np.append(entries - round_half_away(error / 2.0), last)
    return np.clip(table, -32768, 32767).astype(np.int32)


def function_table(function: Callable[[Array], Array], scale: float, out_scale: float) -> Array:
    """`function` of all int16 on `scale`, as int16 on `out_scale`, int32[513].

    Computes as `_line_table`, but each step in float32.
    """
    step_scale, half = np.float32(scale), np.float32(2)
    low, high = step_scale * np.float32(-(1 << 15)), step_scale * np.float32((1 << 15) - 1)
    step = (high - low) / np.float32(_ENTRIES)
    bounds = [np.float32(out_scale) * np.float32(bound) for bound in (-(1 << 15), (1 << 15) - 1)]
    inverse = np.float32(1 << 16) / (bounds[1] - bounds[0])
    at = low + np.arange(_ENTRIES + 1).astype(np.float32) * step
    with np.errstate(over="ignore", invalid="ignore"):
        here, middle = function(at) * inverse, function(at[:-1] + step / half) * inverse
        last = round_half_away(function(np.array([high])) * inverse)
        entries = round_half_away(here[:-1])
        error = round_half_away((here[1:] + entries) / half) - round_half_away(middle)
        table: Array = np.append(entries - round_half_away(error / half), last)
    table[np.isnan(table)] = 0  # the difference of two infinities converts to 0
    return np.clip(table, -32768, 32767).astype(np.int32)
