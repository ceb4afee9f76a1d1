"""Instructions over the inferences of a run: bounds of each layer, and which layers depend on data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def spread(counts: Mapping[str, Any], layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return {counter, inferences, total, layers, varying}; each figure is {least, most} over the inferences.

    counts  content of counts.json
    layers  layers of the report: {index, name, kernel}
    """
    inferences = counts["inferences"]
    rows = [
        {
            **{key: layer[key] for key in ("index", "name", "kernel")},
            **_bounds([inference["layers"][number] for inference in inferences]),
        }
        for number, layer in enumerate(layers)
    ]
    return {
        "counter": counts["counter"],
        "inferences": len(inferences),
        "total": _bounds([inference["total"] for inference in inferences]),
        "layers": rows,
        "varying": [row["index"] for row in rows if row["least"] != row["most"]],
    }


def _bounds(figures: Sequence[int]) -> dict[str, int]:
    return {"least": min(figures), "most": max(figures)}
