"""Squarified treemaps (Bruls, Huizing, van Wijk, 2000): areas in proportion to sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rectangle:
    """A rectangle; x and y are its top left corner."""

    x: float
    y: float
    width: float
    height: float

    def inside(self, margin: float, top: float) -> Rectangle:
        """Return the rectangle without a margin on three sides and `top` above; sizes are at least 0."""
        width, height = max(self.width - 2 * margin, 0.0), max(self.height - margin - top, 0.0)
        return Rectangle(self.x + margin, self.y + top, width, height)


def squarified(sizes: Sequence[float], free: Rectangle) -> Iterator[Rectangle]:
    """Yield a rectangle for each size, in order. Sizes are positive and in descending order."""
    total = sum(sizes)
    scale = free.width * free.height / total if total else 0.0
    areas = [size * scale for size in sizes]
    while areas:
        shorter = min(free.width, free.height)
        count = 1
        while count < len(areas) and _worst(areas[: count + 1], shorter) <= _worst(areas[:count], shorter):
            count += 1
        row, areas = areas[:count], areas[count:]
        thickness = sum(row) / shorter if shorter else 0.0
        position = 0.0
        for area in row:
            length = area / thickness if thickness else 0.0
            if free.width >= free.height:
                yield Rectangle(free.x, free.y + position, thickness, length)
            else:
                yield Rectangle(free.x + position, free.y, length, thickness)
            position += length
        if free.width >= free.height:
            free = Rectangle(free.x + thickness, free.y, free.width - thickness, free.height)
        else:
            free = Rectangle(free.x, free.y + thickness, free.width, free.height - thickness)


def _worst(row: Sequence[float], side: float) -> float:
    """Return the largest aspect ratio in a row along a side of this length."""
    total = sum(row)
    if not total or not side:
        return float("inf")
    return max(max(side**2 * area / total**2, total**2 / (side**2 * area)) if area else float("inf") for area in row)
