"""Errors of timing models against published cycles of silicon.

Reads silicon.json, which `doit bench suite=silicon` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Of models that were compared, by name.
FILE = Path(__file__).with_name("silicon.json")


def accuracy(model: str) -> dict[str, Any] | None:
    """Return the comparison of a timing model with silicon; None if there is none.

    `rows` compared, `held_out` of them that no fit has used, and the `mean` and `worst` relative error of the latter
    (of all rows if none is held out).
    """
    found: dict[str, Any] | None = json.loads(FILE.read_text()).get(model)
    return found


def accuracy_text(found: Mapping[str, Any] | None) -> str:
    """Return `on silicon: 56 rows, 37 held out, mean error 7 %, …` or `not compared …`."""
    if found is None:
        return "not compared with silicon"
    rows = f"{found['rows']} row{'s' if found['rows'] > 1 else ''}"
    held_out = f", {found['held_out']} held out" if 0 < found["held_out"] < found["rows"] else ""
    return f"on silicon: {rows}{held_out}, mean error {100 * found['mean']:.0f} %, worst {100 * found['worst']:.0f} %"
