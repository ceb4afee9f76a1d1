"""Estimated cycles, time and energy: `estimated_cycles` of report.json, and its text."""

from collections.abc import Mapping
from typing import Any

from stages.backends.targets.flash import Flash
from stages.backends.targets.power import Power
from stages.backends.timing.accuracy import accuracy, accuracy_text

COLUMN = "est. cycles"


def estimated_cycles(
    counts: Mapping[str, Any], target: Mapping[str, Any], clock: int | None = None
) -> dict[str, Any] | None:
    """Return the estimate for the first inference; None if cycles were not estimated.

    `least` and `most` depend on operands that the model cannot know, and on wait states that are not known. The latter
    make it a range (`is_range`): `milliseconds` and `microjoules` are then null, and only their bounds are known.
    `clock` (Hz) is that of the board, or of the recipe for a core, or null.
    """
    cycles = counts.get("cycles")
    if cycles is None:
        return None
    model, total, flash, board = target["timing_model"], cycles["total"], target.get("flash"), target["board"] or {}
    is_range = flash is not None and Flash.model_validate(flash).is_range
    return {
        "model": cycles["model"],
        "title": model["title"],
        "source": model["source"],
        "accuracy": accuracy(cycles["model"]),
        "memory": _memory(flash),
        "is_range": is_range,
        "total": total["estimate"],
        "least": total["least"],
        "most": total["most"],
        **_time_and_energy(total, board.get("clock") or clock, board.get("power"), is_range=is_range),
    }


def _time_and_energy(
    cycles: Mapping[str, int], clock: int | None, power: Mapping[str, Any] | None, *, is_range: bool
) -> dict[str, Any]:
    """Return `clock`, and ms and µJ of the estimate and its bounds.

    A figure is None if it is unknown.
    """
    figures: dict[str, Any] = {"clock": clock}
    for prefix, name in (("", "estimate"), ("least_", "least"), ("most_", "most")):
        time = energy = None
        if clock and not (is_range and name == "estimate"):
            milliseconds = 1000 * cycles[name] / clock
            time = round(milliseconds, 6)
            energy = round(Power.model_validate(power).microjoules(milliseconds, clock), 6) if power else None
        figures |= {f"{prefix}milliseconds": time, f"{prefix}microjoules": energy}
    return figures


def chosen_by(plan: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `unit` of the costs in kernel selection.

    For cycles also the timing `model` and its `memory`.
    """
    unit = plan.get("unit", "instructions")
    if unit != "cycles":
        return {"unit": unit}
    return {"unit": unit, "model": target["timing_model"]["name"], "memory": _memory(target.get("flash"))}


def choice_line(chosen: Mapping[str, Any]) -> str:
    """Return `estimated cycles of the timing model cortex-m4, not instructions: 5 wait …`."""
    return f"estimated {chosen['unit']} of the timing model {chosen['model']}, not instructions: {chosen['memory']}"


def _memory(flash: Mapping[str, Any] | None) -> str:
    return "memory without wait states" if flash is None else Flash.model_validate(flash).description


def of_layer(counts: Mapping[str, Any], position: int) -> int | None:
    """Return the estimated cycles of the layer at this position, or None."""
    cycles = counts.get("cycles")
    return None if cycles is None else int(cycles["layers"][position]["estimate"])


def line(cycles: Mapping[str, Any]) -> str:
    """Return the line with cycles and time.

    `4,190,873 (timing model m4), 34.9 ms at 120 MHz; 4,158,000 to 4,312,000 depending on operands: Arm …`

    A range begins with its bounds: `4,158,000 to 9,312,000 (timing model m4), 34.7 to 77.6 ms at 120 MHz: Arm …`.
    """
    time = f", {in_time(cycles)}" if cycles["clock"] else ""
    energy = f", est. {energy_text(cycles)}" if energy_text(cycles) else ""
    bounds = f"{cycles['least']:,} to {cycles['most']:,}"
    span = f"; {bounds} depending on operands" if cycles["least"] < cycles["most"] and not cycles["is_range"] else ""
    total = bounds if cycles["is_range"] else f"{cycles['total']:,}"
    core = f"{cycles['title']}, {cycles['memory']}; {accuracy_text(cycles['accuracy'])}"
    return f"{total} (timing model {cycles['model']}){time}{energy}{span}: {core}"


def in_time(cycles: Mapping[str, Any]) -> str:
    """Return `34.9 ms at 120 MHz`, or `34.7 to 77.6 ms at 120 MHz`; '' without a clock."""
    if not cycles["clock"]:
        return ""
    return f"{amount(cycles, 'milliseconds')} ms at {cycles['clock'] / 1e6:g} MHz"


def energy_text(cycles: Mapping[str, Any]) -> str:
    """Return `1,430 µJ`, or `690 to 1,430 µJ`; '' if it is unknown."""
    energy = amount(cycles, "microjoules")
    return f"{energy} µJ" if energy else ""


def amount(figures: Mapping[str, Any], name: str) -> str:
    """Return the figure of this name, its bounds if only they are known, or ''."""
    return span(figures[name], figures[f"least_{name}"], figures[f"most_{name}"])


def span(estimate: float | None, least: float | None, most: float | None) -> str:
    """Return the estimate, or its bounds if only these are known, or ''."""
    if estimate is not None:
        return short(estimate)
    return "" if least is None or most is None else f"{short(least)} to {short(most)}"


def short(number: float) -> str:
    """Return `1,240`, `40`, `5.41`, `0.123`: three digits or more before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{round(number, 4):.3g}"
