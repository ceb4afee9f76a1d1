"""The rows of a layer's calls: candidates for the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stages.lower.streaming.schedule import RowLayer

LOCKSTEPS = (1, 2, 4, 8)
"""Rows of the group's last layer per step; each layer before makes as many as its readers need."""
EQUAL_ROWS = (1, 2, 3, 4)
"""Rows per call of every layer."""


def row_counts(layers: Sequence[RowLayer]) -> list[dict[int, int]]:
    """Return candidates of the rows per call of each layer, by its index."""
    counts = []
    for step in LOCKSTEPS:
        rows: dict[int, int] = {}
        for layer in reversed(layers):
            readers = [other for other in layers if layer.output in other.inputs]
            rows[layer.index] = max((rows[x.index] * x.window.stride for x in readers), default=step)
        counts.append(rows)
    return counts + [{layer.index: number for layer in layers} for number in EQUAL_ROWS]


def in_phase(layers: Sequence[RowLayer]) -> tuple[RowLayer, ...]:
    """Return layers whose first calls end where a reader has exactly the rows it needs.

    So buffers need not hold what one more call adds. Calls of a layer have at most two numbers of rows.
    """
    needed: dict[int, int] = {}
    phased = []
    for layer in reversed(layers):
        readers = [other for other in layers if layer.output in other.inputs]
        ends = [(needed[x.index] - 1) * x.window.stride + x.window.size - x.window.padding for x in readers]
        needed[layer.index] = max(ends, default=layer.rows)
        first = needed[layer.index] % layer.rows
        is_simple = first + layer.rows <= layer.height and (layer.height - first) % layer.rows in (0, first)
        phased.append(replace(layer, first=first) if is_simple and not layer.window.accumulates else layer)
    return tuple(reversed(phased))
