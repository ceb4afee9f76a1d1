"""Costs of tiles as the accelerator reports them, cached for tiles that cost the same.

Tiles of equal shape and border position cost the same: all of a layer, except those at its edges.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from stages.backends.accelerators.accelerator import Accelerator, CoreWork
from stages.backends.accelerators.tiles import Tile, reads
from stages.ir.graph import LayerView

Key = tuple[tuple[int, ...], ...]


class TileCosts:
    """Cycles, work of the core and scratch of one layer's tiles."""

    def __init__(self, view: LayerView, accelerator: Accelerator[Any]) -> None:
        self._view, self._accelerator = view, accelerator
        self._cache: dict[Key, tuple[int, CoreWork, Mapping[str, int]]] = {}
        self._cached_key = cache(self._key_of)

    def cycles(self, tile: Tile) -> int:
        """Return the engine's cycles."""
        return self._of(tile)[0]

    def core(self, tile: Tile) -> CoreWork:
        """Return the work of the core."""
        return self._of(tile)[1]

    def scratch(self, tile: Tile) -> Mapping[str, int]:
        """Return scratch bytes by name."""
        return self._of(tile)[2]

    def _of(self, tile: Tile) -> tuple[int, CoreWork, Mapping[str, int]]:
        key = self._cached_key(tile)
        if key not in self._cache:
            view, accelerator = self._view, self._accelerator
            self._cache[key] = (
                accelerator.cycles(view, tile), accelerator.core(view, tile), accelerator.scratch(view, tile)
            )  # fmt: skip
        return self._cache[key]

    def _key_of(self, tile: Tile) -> Key:
        parts = ((len(p.rows), len(p.channels), p.above, p.below) for p in reads(self._view, tile))
        return ((len(tile.rows), len(tile.channels)), *parts)
