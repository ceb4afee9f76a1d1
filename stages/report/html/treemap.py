"""Areas in a rectangle, each in proportion to its bytes: squarified treemaps (Bruls, Huizing, van Wijk, 2000)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float

    def inside(self, margin: float, top: float) -> Rectangle:
        """What is left within a margin on three sides and another on top; never less than nothing."""
        width, height = max(self.width - 2 * margin, 0.0), max(self.height - margin - top, 0.0)
        return Rectangle(self.x + margin, self.y + top, width, height)


def squarified(sizes: Sequence[float], room: Rectangle) -> Iterator[Rectangle]:
    """One rectangle for each size, in order; sizes are positive and fall. Areas are in proportion to them."""
    total = sum(sizes)
    scale = room.width * room.height / total if total else 0.0
    areas = [size * scale for size in sizes]
    while areas:
        shorter = min(room.width, room.height)
        count = 1
        while count < len(areas) and _worst(areas[: count + 1], shorter) <= _worst(areas[:count], shorter):
            count += 1
        row, areas = areas[:count], areas[count:]
        thickness = sum(row) / shorter if shorter else 0.0
        at = 0.0
        for area in row:
            length = area / thickness if thickness else 0.0
            if room.width >= room.height:
                yield Rectangle(room.x, room.y + at, thickness, length)
            else:
                yield Rectangle(room.x + at, room.y, length, thickness)
            at += length
        if room.width >= room.height:
            room = Rectangle(room.x + thickness, room.y, room.width - thickness, room.height)
        else:
            room = Rectangle(room.x, room.y + thickness, room.width, room.height - thickness)


def _worst(row: Sequence[float], side: float) -> float:
    """The largest ratio of a rectangle's sides when the row lies along a side of this length."""
    total = sum(row)
    if not total or not side:
        return float("inf")
    return max(max(side**2 * area / total**2, total**2 / (side**2 * area)) if area else float("inf") for area in row)
