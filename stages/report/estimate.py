"""Cycles as a timing model estimates them: `estimated_cycles` of report.json, and how it is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.backends.targets.timing import Flash

COLUMN = "est. cycles"


def estimated_cycles(counts: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any] | None:
    """Of the first inference; None where nothing estimated them.

    `least` and `most` depend on operands that the model cannot know. `clock` (Hz) and `milliseconds` are those of the
    board, or null.
    """
    found = counts.get("cycles")
    if found is None:
        return None
    model, total = target["timing_model"], found["total"]
    clock = (target["board"] or {}).get("clock")
    return {
        "model": found["model"],
        "title": model["title"],
        "source": model["source"],
        "memory": _memory(target.get("flash")),
        "total": total["estimate"],
        "least": total["least"],
        "most": total["most"],
        "clock": clock,
        "milliseconds": round(1000 * total["estimate"] / clock, 6) if clock else None,
    }


def chosen_by(plan: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """`unit` of the costs that kernels were chosen by; of cycles the `model` and the `memory` that they are of."""
    unit = plan.get("unit", "instructions")
    if unit != "cycles":
        return {"unit": unit}
    return {"unit": unit, "model": target["timing_model"]["name"], "memory": _memory(target.get("flash"))}


def choice_line(found: Mapping[str, Any]) -> str:
    """`estimated cycles of the timing model cortex-m4, not instructions: 5 wait states in rom, …`."""
    return f"estimated {found['unit']} of the timing model {found['model']}, not instructions: {found['memory']}"


def _memory(flash: Mapping[str, Any] | None) -> str:
    return "memory without wait states" if flash is None else Flash.model_validate(flash).said


def of_layer(counts: Mapping[str, Any], position: int) -> int | None:
    """The estimate for the layer at this position; None where there is none."""
    found = counts.get("cycles")
    return None if found is None else int(found["layers"][position]["estimate"])


def line(found: Mapping[str, Any]) -> str:
    """Return `4,190,873 (timing model m4), 34.9 ms at 120 MHz; 4,158,000 to 4,312,000 depending on operands: Arm …`."""
    time = f", {in_time(found)}" if found["clock"] else ""
    span = f"; {found['least']:,} to {found['most']:,} depending on operands" if found["least"] < found["most"] else ""
    return f"{found['total']:,} (timing model {found['model']}){time}{span}: {found['title']}, {found['memory']}"


def in_time(found: Mapping[str, Any]) -> str:
    """`34.9 ms at 120 MHz`, '' without a clock."""
    if not found["clock"]:
        return ""
    return f"{found['milliseconds']:,.3g} ms at {found['clock'] / 1e6:g} MHz"
