"""measured.json: what the stage `measure` found out about a network's layers, for the costs that leave them open.

format   of the file
layers   signature of a layer, as its kernel sees it -> variant -> figure (stages.tensorize.costs)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

FORMAT = 1
FILE = "measured.json"

Figures = Mapping[str, Mapping[str, int]]
"""Signature of a layer -> variant -> instructions, or cycles."""


def save(figures: Figures, folder: Path) -> None:
    """Writes the file: sorted, the same for the same figures."""
    content = {"format": FORMAT, "layers": figures}
    (folder / FILE).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load(folder: Path) -> dict[str, dict[str, int]]:
    """Reads what `save` wrote. Raises ValueError for another format."""
    content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    if content["format"] != FORMAT:
        raise ValueError(f"{FILE} has format {content['format']}; this version reads {FORMAT}")
    layers: dict[str, dict[str, int]] = content["layers"]
    return layers
