"""Instructions of each layer in a run's inferences, beside the bound for any input."""

from collections.abc import Mapping, Sequence
from typing import Any

from stages.delivery.evidence.worst_case import Bound


def spread(
    counts: Mapping[str, Any], layers: Sequence[Mapping[str, Any]], bounds: Sequence[Bound] = ()
) -> dict[str, Any]:
    """Return {counter, inferences, total, layers, varying, unbounded, holds}.

    A figure is {least, most, bound}: least and most over the inferences; `bound` for any input, None if unknown.
    `unbounded` are layers with loops whose number of iterations varied. `holds`: no inference exceeded a bound, and the
    run of the bounds had the same counts.

    counts  content of counts.json
    layers  layers of the report: {index, name, kernel}
    bounds  of each layer, and of the code after the last layer
    """
    inferences = counts["inferences"]
    rows = [
        {
            **{key: layer[key] for key in ("index", "name", "kernel")},
            **_bounds([inference["layers"][number] for inference in inferences]),
        }
        for number, layer in enumerate(layers)
    ]
    total = _bounds([inference["total"] for inference in inferences])
    known = [bound.instructions if bound.repeats else None for bound in bounds] or [None] * (len(rows) + 1)
    for row, bound in zip(
        (*rows, total), (*known[:-1], None if None in known else sum(filter(None, known))), strict=True
    ):
        row["bound"] = bound
    return {
        "counter": counts["counter"],
        "inferences": len(inferences),
        "total": total,
        "layers": rows,
        "varying": [row["index"] for row in rows if row["least"] != row["most"]],
        "unbounded": [row["index"] for row, bound in zip(rows, bounds, strict=False) if not bound.repeats],
        "holds": all(row["bound"] is None or row["most"] <= row["bound"] for row in (*rows, total))
        and all(bound.counted == row["most"] for row, bound in zip(rows, bounds, strict=False)),
    }


def _bounds(figures: Sequence[int]) -> dict[str, Any]:
    return {"least": min(figures), "most": max(figures)}
