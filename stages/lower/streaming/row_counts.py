"""The rows of a layer's calls: candidates for the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from stages.lower.streaming.row_window import RowWindow
from stages.lower.streaming.schedule import RowLayer

LOCKSTEPS = (1, 2, 4, 8)
"""Rows of the group's last layer per step; each layer before makes as many as its readers need."""
EQUAL_ROWS = (1, 2, 3, 4)
"""Rows per call of every layer."""


def row_counts(layers: Sequence[RowLayer]) -> list[tuple[int, ...]]:
    """Return candidates of the rows per call of each layer."""
    counts = []
    for step in LOCKSTEPS:
        rows: list[int] = []
        needed: dict[str, int] = {}  # of each tensor
        for layer in reversed(layers):
            rows.append(in_steps(layer.window, needed.get(layer.output, step)))
            for name in layer.inputs:
                count = -(-rows[-1] * layer.window.stride // layer.window.rate)
                needed[name] = max(needed.get(name, 1), count)
        counts.append(rows[::-1])
    counts += [[number] * len(layers) for number in EQUAL_ROWS]
    return [tuple(min(n, layer.height) for n, layer in zip(rows, layers, strict=True)) for rows in counts]


def in_steps(window: RowWindow, rows: int) -> int:
    """Return rows of a call, rounded up to a multiple that the window allows."""
    return -(-rows // window.step) * window.step


def in_phase(layers: Sequence[RowLayer]) -> tuple[RowLayer, ...]:
    """Return layers whose first calls end where a reader has exactly the rows it needs.

    So buffers need not hold what one more call adds. Calls of a layer have at most two numbers of rows.
    """
    ends: dict[str, int] = {}  # rows of each tensor that its readers need
    phased = []
    for layer in reversed(layers):
        needed, window = ends.get(layer.output, layer.rows), layer.window
        end = window.end(needed - 1)
        for name in layer.inputs:
            ends[name] = max(ends.get(name, end), end)
        first = needed % layer.rows
        is_simple = first + layer.rows <= layer.height and (layer.height - first) % layer.rows in (0, first)
        is_simple &= first % window.step == 0 and not window.accumulates
        phased.append(_beginning(layer, first) if first and is_simple else layer)
    return tuple(reversed(phased))


@lru_cache(maxsize=1 << 12)
def _beginning(layer: RowLayer, first: int) -> RowLayer:
    """Return the layer with `first` rows in its first call."""
    return replace(layer, first=first)
