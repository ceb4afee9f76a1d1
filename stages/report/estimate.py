"""Cycles estimated by a timing model: `estimated_cycles` of report.json, and its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.backends.targets.timing import Flash

COLUMN = "est. cycles"


def estimated_cycles(
    counts: Mapping[str, Any], target: Mapping[str, Any], clock: int | None = None
) -> dict[str, Any] | None:
    """Return the estimate for the first inference; None if cycles were not estimated.

    `least` and `most` depend on operands that the model cannot know. `clock` (Hz) and `milliseconds` are those of the
    board, or of the recipe for a core, or null.
    """
    cycles = counts.get("cycles")
    if cycles is None:
        return None
    model, total = target["timing_model"], cycles["total"]
    clock = (target["board"] or {}).get("clock") or clock
    return {
        "model": cycles["model"],
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
    """Return the `unit` of the costs in kernel selection; for cycles also the timing `model` and its `memory`."""
    unit = plan.get("unit", "instructions")
    if unit != "cycles":
        return {"unit": unit}
    return {"unit": unit, "model": target["timing_model"]["name"], "memory": _memory(target.get("flash"))}


def choice_line(chosen: Mapping[str, Any]) -> str:
    """`estimated cycles of the timing model cortex-m4, not instructions: 5 wait states in rom, …`."""
    return f"estimated {chosen['unit']} of the timing model {chosen['model']}, not instructions: {chosen['memory']}"


def _memory(flash: Mapping[str, Any] | None) -> str:
    return "memory without wait states" if flash is None else Flash.model_validate(flash).description


def of_layer(counts: Mapping[str, Any], position: int) -> int | None:
    """Return the estimated cycles of the layer at this position, or None."""
    cycles = counts.get("cycles")
    return None if cycles is None else int(cycles["layers"][position]["estimate"])


def line(cycles: Mapping[str, Any]) -> str:
    """Return `4,190,873 (timing model m4), 34.9 ms at 120 MHz; 4,158,000 to 4,312,000 depending on operands: Arm …`."""
    time = f", {in_time(cycles)}" if cycles["clock"] else ""
    low, high = cycles["least"], cycles["most"]
    span = f"; {low:,} to {high:,} depending on operands" if low < high else ""
    return f"{cycles['total']:,} (timing model {cycles['model']}){time}{span}: {cycles['title']}, {cycles['memory']}"


def in_time(cycles: Mapping[str, Any]) -> str:
    """`34.9 ms at 120 MHz`; '' without a clock."""
    if not cycles["clock"]:
        return ""
    return f"{cycles['milliseconds']:,.3g} ms at {cycles['clock'] / 1e6:g} MHz"
