"""Errors of timing models against published cycles of silicon.

Reads silicon.json, which `doit bench suite=silicon` writes.
"""

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
    record: dict[str, Any] | None = json.loads(FILE.read_text()).get(model)
    return record


def accuracy_text(record: Mapping[str, Any] | None) -> str:
    """Return `on silicon: 56 rows, 37 held out, mean error 7 %, …` or `not compared …`."""
    if record is None:
        return "not compared with silicon"
    rows = f"{record['rows']} row{'s' if record['rows'] > 1 else ''}"
    held_out = f", {record['held_out']} held out" if 0 < record["held_out"] < record["rows"] else ""
    return f"on silicon: {rows}{held_out}, mean error {100 * record['mean']:.0f} %, worst {100 * record['worst']:.0f} %"
