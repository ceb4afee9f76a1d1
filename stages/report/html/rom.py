"""Treemap of the ROM: groups of symbols, and the weights of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 1000.0, 360.0
_TITLE = 18.0  # of a group
_LETTER = 6.2  # of a label, in units of the picture


@dataclass(frozen=True)
class Leaf:
    """A symbol, or the weights of a layer, with its bytes."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Box:
    """A rectangle with its label, '' if it does not fit. `group` selects the colour."""

    place: Rectangle
    label: str
    title: str
    group: int
    is_group: bool = False


def groups(report: Mapping[str, Any]) -> dict[str, list[Leaf]]:
    """Return leaves by group, the largest first.

    Groups are the weights, the model, and folders of code.
    """
    by_group: dict[str, list[Leaf]] = {}
    # Blocks of the arena lie in RAM, those of the weights are shown by layer.
    blocks = {block["symbol"] for block in report["memory"]["blocks"]}
    layers = {layer["index"]: layer for layer in report["layers"]}
    for symbol in report["symbols"]:
        if (
            symbol["section"].startswith((".bss", ".noinit", ".stack"))
            or symbol["name"] in blocks
            or not symbol["bytes"]
        ):
            continue
        by_group.setdefault(_group(symbol), []).append(Leaf(symbol["name"], symbol["bytes"]))
    by_layer: dict[str, int] = {}
    for constant in report["weights"]:
        names = [f"{index} {layers[index]['op']}" for index in constant["layers"][:1] if index in layers]
        name = f"{names[0] if names else constant['name']}{' and others' if len(constant['layers']) > 1 else ''}"
        by_layer[name] = by_layer.get(name, 0) + constant["bytes"]
    if by_layer:
        by_group["weights"] = [Leaf(name, size) for name, size in by_layer.items() if size]
    for leaves in by_group.values():
        leaves.sort(key=lambda leaf: (-leaf.bytes, leaf.name))
    return dict(sorted(by_group.items(), key=lambda pair: (-sum(leaf.bytes for leaf in pair[1]), pair[0])))


def _group(symbol: Mapping[str, Any]) -> str:
    """Return the folder of a symbol's file, `model`, or `start-up and library`."""
    file = str(symbol["file"] or "")
    folder = file.rpartition("/")[0]
    if folder:
        return folder
    return "model" if file.startswith(("model", "layers", "weights")) else "start-up and library"


def boxes(groups: Mapping[str, Sequence[Leaf]]) -> Iterator[Box]:
    """Yield the rectangles of the treemap, each group before its leaves."""
    sums = [sum(leaf.bytes for leaf in leaves) for leaves in groups.values()]
    places = squarified([float(size) for size in sums], Rectangle(0, 0, WIDTH, HEIGHT))
    for number, ((name, leaves), size, place) in enumerate(zip(groups.items(), sums, places, strict=True)):
        title = f"{name}: {size:,} bytes"
        yield Box(place, _label(title, place.width), title, number, is_group=True)
        inner = place.inside(2, _TITLE if place.height > 2 * _TITLE else 2)
        rectangles = squarified([float(leaf.bytes) for leaf in leaves], inner)
        for leaf, rectangle in zip(leaves, rectangles, strict=True):
            label = _label(leaf.name, rectangle.width) if rectangle.height > 14 else ""
            yield Box(rectangle, label, f"{leaf.name}: {leaf.bytes:,} bytes", number)


def _label(text: str, width: float) -> str:
    """Shorten the text to the width; '' if fewer than four letters fit."""
    letters = int((width - 6) / _LETTER)
    if len(text) <= letters:
        return text
    return f"{text[: letters - 1]}…" if letters > 3 else ""


@dataclass(frozen=True)
class Rectangle:
    """A rectangle; x and y are its top left corner."""

    x: float
    y: float
    width: float
    height: float

    def inside(self, margin: float, top: float) -> Rectangle:
        """Return the rectangle without a margin on three sides and `top` above, at least 0."""
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
