"""Milliseconds of an inference and its layers: measured, simulated or estimated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stages.backends.timing.accuracy import accuracy_text
from stages.report.board import counted
from stages.report.estimate import span


@dataclass(frozen=True)
class Latency:
    """Time of the first inference in ms: `least` to `most`, equal if wait states are known.

    `how` it is known; `basis`: cycles and clock; `term`: entry in the glossary.
    """

    least: float
    most: float
    how: str
    basis: str
    term: str

    @property
    def text(self) -> str:
        """Text: `40 ms`, or `12.1 to 31 ms`."""
        return f"{span(self.least if self.least == self.most else None, self.least, self.most)} ms"


def latency(report: Mapping[str, Any]) -> Latency | None:
    """Return the time of the first inference; None if its cycles or the clock are unknown.

    Cycles are measured on a board, simulated beside an accelerator, or estimated by a timing model.
    """
    estimate, total = report.get("estimated_cycles"), report["instructions"]["total"]
    clock = _clock(report)
    if clock and total and counted(report) == "cycles":
        how = "measured" if report.get("ran") else "simulated"
        time = 1000 * total / clock
        return Latency(time, time, how, f"{total:,} cycles at {clock / 1e6:g} MHz", "count")
    if estimate and clock:
        ends = ("least", "most") if estimate["is_range"] else ("total",)
        cycles = " to ".join(f"{estimate[end]:,}" for end in ends)
        model = f"timing model {estimate['model']}, {accuracy_text(estimate['accuracy'])}"
        least, most = (1000 * estimate[end] / clock for end in (ends[0], ends[-1]))
        return Latency(least, most, "estimated", f"{cycles} cycles at {clock / 1e6:g} MHz, {model}", "estimated cycles")
    return None


def layer_milliseconds(report: Mapping[str, Any], layer: Mapping[str, Any]) -> float | None:
    """Return the time of a layer in ms, None if it is unknown or a range.

    Uses the same cycles as `latency`.
    """
    time, clock = latency(report), _clock(report)
    if time is None or not clock or time.least < time.most:
        return None
    cycles = layer["estimated_cycles"] if time.how == "estimated" else layer["instructions"]
    return None if cycles is None else 1000 * cycles / clock


def _clock(report: Mapping[str, Any]) -> int | None:
    """Return the clock in Hz: the board's, or the one that the estimate was made for."""
    return (report.get("estimated_cycles") or {}).get("clock") or (report["board"] or {}).get("clock")
