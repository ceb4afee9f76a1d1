"""Milliseconds of one inference and of its layers, from measured, simulated or estimated cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stages.report.board import counted


@dataclass(frozen=True)
class Latency:
    """Time of the first inference. `how` it is known; `basis`: cycles and clock; `term`: entry in the glossary."""

    milliseconds: float
    how: str
    basis: str
    term: str


def latency(report: Mapping[str, Any]) -> Latency | None:
    """Return the time of the first inference; None if its cycles or the clock are unknown.

    Cycles are measured on a board, simulated beside an accelerator, or estimated by a timing model.
    """
    estimate, total = report.get("estimated_cycles"), report["instructions"]["total"]
    clock = _clock(report)
    if clock and total and counted(report) == "cycles":
        how = "measured" if report.get("ran") else "simulated"
        return Latency(1000 * total / clock, how, f"{total:,} cycles at {clock / 1e6:g} MHz", "count")
    if estimate and clock:
        cycles = f"{estimate['total']:,} cycles at {clock / 1e6:g} MHz, timing model {estimate['model']}"
        return Latency(1000 * estimate["total"] / clock, "estimated", cycles, "estimated cycles")
    return None


def layer_milliseconds(report: Mapping[str, Any], layer: Mapping[str, Any]) -> float | None:
    """Return the time of a layer in ms, from the same cycles as `latency`; None if it is unknown."""
    time, clock = latency(report), _clock(report)
    if time is None or not clock:
        return None
    cycles = layer["estimated_cycles"] if time.how == "estimated" else layer["instructions"]
    return None if cycles is None else 1000 * cycles / clock


def in_milliseconds(milliseconds: float) -> str:
    """`1,240`, `40.0`, `5.41`, `0.123`: four digits at most, and three decimals."""
    digits = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2 if milliseconds >= 1 else 3
    return f"{milliseconds:,.{digits}f}"


def _clock(report: Mapping[str, Any]) -> int | None:
    """Return the clock in Hz: the board's, or the one that the estimate was made for."""
    return (report.get("estimated_cycles") or {}).get("clock") or (report["board"] or {}).get("clock")
