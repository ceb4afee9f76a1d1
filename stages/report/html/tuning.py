"""What tuning found, as the page shows it: layers that are computed otherwise first, those that save most before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.report.html.memory import short_name


def tuning(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Totals and a row for each layer; None for a recipe that is not tuned."""
    found = report.get("tuning")
    if not found:
        return None
    rows = sorted((_row(layer) for layer in found["layers"]), key=lambda row: (not row["changed"], -row["saved"]))
    saved = found["before"] - found["now"]
    return {
        "unit": report["chosen_by"]["unit"],
        "before": found["before"],
        "now": found["now"],
        "percent": 100 * saved / found["before"] if found["before"] else 0.0,
        "changed": sum(row["changed"] for row in rows),
        "rows": rows,
    }


def _row(layer: Mapping[str, Any]) -> dict[str, Any]:
    was, takes = (None if layer[key] is None else round(layer[key]) for key in ("before_cost", "now_cost"))
    changed = layer["before"] != layer["now"]
    costs = {"before_cost": was, "now_cost": takes, "saved": (was or 0) - (takes or 0)}
    return {**layer, **costs, "short": short_name(layer["name"]), "changed": changed}
