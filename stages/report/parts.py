"""Instructions of each part of a chain: the front end, networks and smoothed scores."""

from collections.abc import Mapping, Sequence
from typing import Any


def parts(chain: Sequence[Mapping[str, Any]], layers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the name, layers, MACs and instructions (None: not counted) of each part.

    chain  `parts` of import.json; a layer belongs to the part whose name is its prefix
    """
    rows = []
    for part in chain:
        own = [layer for layer in layers if str(layer["name"]).startswith(f"{part['name']}/")]
        counts = [layer["instructions"] for layer in own if layer["instructions"] is not None]
        rows.append(
            {
                "name": part["name"],
                "layers": len(own),
                "macs": sum(layer["macs"] for layer in own),
                "instructions": sum(counts) if counts else None,
            }
        )
    return rows


def parts_line(rows: Sequence[Mapping[str, Any]], total: int | None) -> str:
    """Return such as `frontend 40,112 instructions (53 %), okay_nabu_v2 34,900 (46 %)`."""
    if not total or any(row["instructions"] is None for row in rows):
        return ", ".join(f"{row['name']} {row['layers']} layers" for row in rows)
    unit = " instructions"
    texts = []
    for row in rows:
        texts.append(f"{row['name']} {row['instructions']:,}{unit} ({100 * row['instructions'] / total:.0f} %)")
        unit = ""
    return ", ".join(texts)
