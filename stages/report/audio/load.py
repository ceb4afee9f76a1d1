"""Duty cycle and charge per hour of a network that runs once per step of audio."""

from collections.abc import Mapping, Sequence
from typing import Any

from stages.backends.targets.power import Power
from stages.report.board import counted


def load(
    report: Mapping[str, Any], totals: Sequence[int], step_seconds: float, clock: int | None = None
) -> dict[str, Any] | None:
    """Return `load` of report.json's `audio`; None without counts in the core's units.

    totals  counts of the steps
    clock   Hz of a core, from the recipe

    Estimated cycles are known of the first inference: those of a step are its instructions times that ratio. If they
    are a range, because the board's wait states are not known, the load is an upper bound.
    """
    unit, estimate, ratio = counted(report), report.get("estimated_cycles"), 1.0
    if report["instructions"]["total"] is None or unit == "ticks" or not totals:
        return None
    if unit == "instructions" and estimate:
        cycles = estimate["most" if estimate["is_range"] else "total"]
        unit, ratio = "estimated cycles", cycles / report["instructions"]["total"]
    board = report["board"] or {}
    clock = board.get("clock") or clock
    mean, most = (round(ratio * count) for count in (sum(totals) / len(totals), max(totals)))
    duty, longest = (count / (step_seconds * clock) if clock else None for count in (mean, most))
    power = board.get("power")
    charge = duty * Power.model_validate(power).milliamperes(clock) if power and clock and duty is not None else None
    return {
        "unit": unit,
        "step": mean,
        "most": most,
        "clock": clock,
        "duty": duty,
        "longest": longest,
        "mah_per_hour": charge,
        "mwh_per_hour": charge * power["supply_v"] if charge is not None and power else None,
    }


def overload(load: Mapping[str, Any] | None, step_seconds: float) -> list[str]:
    """Return a warning if a step takes longer than its audio."""
    if load is None or load["longest"] is None or load["longest"] <= 1:
        return []
    taken = 1000 * step_seconds * load["longest"]
    at = f"at {load['clock'] / 1e6:g} MHz"
    return [f"a step takes up to {taken:.3g} ms {at}, but its audio lasts {1000 * step_seconds:g} ms"]
