"""What takes the ROM: groups of symbols, and the weights of each layer, as a treemap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.report.html.treemap import Rectangle, squarified

WIDTH, HEIGHT = 1000.0, 360.0
_TITLE = 18.0  # of a group
_LETTER = 6.2  # of a label, in units of the picture


@dataclass(frozen=True)
class Part:
    """A leaf: what it is, its bytes, and its share of the groups' colour."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Box:
    """A rectangle of the picture with its label, '' where there is no room for one; `group` numbers the colour."""

    place: Rectangle
    label: str
    title: str
    group: int
    is_group: bool = False


def groups(report: Mapping[str, Any]) -> dict[str, list[Part]]:
    """Parts by group, the largest first. Weights are those of layers; code is that of the model or of a folder."""
    found: dict[str, list[Part]] = {}
    weights = {one["symbol"] for one in report["memory"]["blocks"] if one["part"] == "weights"}
    layers = {layer["index"]: layer for layer in report["layers"]}
    for symbol in report["symbols"]:
        if (
            symbol["section"].startswith((".bss", ".noinit", ".stack"))
            or symbol["name"] in weights
            or not symbol["bytes"]
        ):
            continue
        found.setdefault(_group(symbol), []).append(Part(symbol["name"], symbol["bytes"]))
    by_layer: dict[str, int] = {}
    for one in report["weights"]:
        names = [f"{index} {layers[index]['op']}" for index in one["layers"][:1] if index in layers]
        name = f"{names[0] if names else one['name']}{' and others' if len(one['layers']) > 1 else ''}"
        by_layer[name] = by_layer.get(name, 0) + one["bytes"]
    if by_layer:
        found["weights"] = [Part(name, size) for name, size in by_layer.items() if size]
    for parts in found.values():
        parts.sort(key=lambda part: (-part.bytes, part.name))
    return dict(sorted(found.items(), key=lambda pair: (-sum(part.bytes for part in pair[1]), pair[0])))


def _group(symbol: Mapping[str, Any]) -> str:
    """`kernels/rvp`, `model`, or `start-up and library` for what no file of the project holds."""
    file = str(symbol["file"] or "")
    folder = file.rpartition("/")[0]
    if folder:
        return folder
    return "model" if file.startswith(("model", "layers", "weights")) else "start-up and library"


def boxes(found: Mapping[str, Sequence[Part]]) -> Iterator[Box]:
    """The rectangles of the treemap, groups before what is in them."""
    sums = [sum(part.bytes for part in parts) for parts in found.values()]
    places = squarified([float(size) for size in sums], Rectangle(0, 0, WIDTH, HEIGHT))
    for number, ((name, parts), size, place) in enumerate(zip(found.items(), sums, places, strict=True)):
        title = f"{name}: {size:,} bytes"
        yield Box(place, _label(title, place.width), title, number, is_group=True)
        room = place.inside(2, _TITLE if place.height > 2 * _TITLE else 2)
        leaves = squarified([float(part.bytes) for part in parts], room)
        for part, leaf in zip(parts, leaves, strict=True):
            label = _label(part.name, leaf.width) if leaf.height > 14 else ""
            yield Box(leaf, label, f"{part.name}: {part.bytes:,} bytes", number)


def _label(text: str, width: float) -> str:
    """The text, shortened to the width; '' where hardly a letter fits."""
    letters = int((width - 6) / _LETTER)
    if len(text) <= letters:
        return text
    return f"{text[: letters - 1]}…" if letters > 3 else ""
