"""What differs between two reports: totals, and layers matched by name, those that matter most first."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# What may not grow when a limit is given; the others are shown.
INSTRUCTIONS, _CYCLES, _ESTIMATE = "instructions", "cycles", "estimated cycles"
HELD = (INSTRUCTIONS, _CYCLES, _ESTIMATE, "RAM", "ROM")


@dataclass(frozen=True)
class Change:
    """A figure before and after, None where there is none."""

    name: str
    before: float | None
    after: float | None

    @property
    def by(self) -> float | None:
        """How much more it is; None where one side has none."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def percent(self) -> float | None:
        """The same in percent of before; None where that is nothing or unknown."""
        return None if self.by is None or not self.before else 100 * self.by / self.before


@dataclass(frozen=True)
class LayerChange(Change):
    """A layer's instructions; `kernels` and `shapes` of both sides, '' where it is on one side only."""

    op: str = ""
    kernels: tuple[str, str] = ("", "")
    shapes: tuple[str, str] = ("", "")

    @property
    def effect(self) -> float:
        """Instructions that it adds to the run, or takes from it."""
        return (self.after or 0) - (self.before or 0)


@dataclass(frozen=True)
class Difference:
    """Two reports, by what they are called, and what each counted; `layers` are none where that are two things.

    `counted` is the name of what layers took: `cycles / instructions` of an accelerator's report and a core's, since in
    the simulator a cycle is an instruction of the core. `notes` say which totals both have that are not set against
    each other, and why.
    """

    names: tuple[str, str]
    totals: tuple[Change, ...]
    layers: tuple[LayerChange, ...]
    counters: tuple[str, str] = (INSTRUCTIONS, INSTRUCTIONS)
    counted: str = INSTRUCTIONS
    notes: tuple[str, ...] = ()

    @property
    def one_counter(self) -> bool:
        """Whether both count the same."""
        return len(set(self.counters)) == 1

    def grown(self, limit: float) -> list[Change]:
        """What grew by more than `limit` percent, and an accuracy that fell by more percentage points."""
        return [one for one in self.totals if _is_worse(one, limit, (*HELD, *self.counters, self.counted))]


def _is_worse(one: Change, limit: float, held: Container[str]) -> bool:
    if one.name == "accuracy":
        return one.by is not None and -100 * one.by > limit
    if one.name == "mismatches":
        return bool(one.after and one.after > (one.before or 0))
    if one.name not in held or one.by is None:
        return False
    return one.by > 0 if not one.before else one.percent is not None and one.percent > limit


def difference(names: tuple[str, str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """Of two contents of report.json."""
    totals = tuple(_totals(before, after))
    counters, notes = (_counter(before), _counter(after)), tuple(_notes(before, after))
    if counters[0] != counters[1]:
        return Difference(names, totals, (), counters, notes=notes)
    layers = sorted(_layers(before["layers"], after["layers"]), key=lambda one: (-abs(one.effect), one.name))
    return Difference(names, totals, tuple(layers), counters, _counted_by((before, after), counters[0]), notes)


def _counter(report: Mapping[str, Any]) -> str:
    """What a report's column of instructions can be set against: of a run on a board `cycles by DWT` or the like."""
    ran = report.get("ran")
    return INSTRUCTIONS if not isinstance(ran, Mapping) else str(ran.get("counter") or "nothing")


def _counted_by(reports: Sequence[Mapping[str, Any]], counter: str) -> str:
    """What the reports with this counter call it, each name once."""
    found = [_CYCLES if one.get("cycles") else counter for one in reports if _counter(one) == counter]
    return " / ".join(dict.fromkeys(found))


def _counted(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """A row for each thing that is counted, two where a board has counted cycles and a simulator instructions."""
    path = (INSTRUCTIONS, "total")
    sides = [(_counter(report), _at(report, path)) for report in (before, after)]
    for counter in dict.fromkeys(counter for counter, _ in sides):
        yield Change(
            _counted_by((before, after), counter), *(count if counter == name else None for name, count in sides)
        )


def _totals(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    yield from (one for one in _counted(before, after) if one.before is not None or one.after is not None)
    for name, path in {
        _ESTIMATE: ("estimated_cycles", "total"),
        "RAM": ("memory", "ram_bytes"),
        "ROM": ("memory", "rom_bytes"),
        "arena": ("memory", "arena_bytes"),
        "stack": ("memory", "stack_bytes"),
        "weights": ("memory", "weights_bytes"),
        "MACs": ("model", "macs"),
        "mismatches": ("verify", "mismatches"),
        "accuracy": ("verify", "accuracy", "ours"),
    }.items():
        if name == _ESTIMATE and len(_timing_models(before, after)) > 1:
            continue
        one = Change(name, _at(before, path), _at(after, path))
        if one.before is not None or one.after is not None:
            yield one


def _timing_models(*reports: Mapping[str, Any]) -> list[str]:
    """The models that cycles are estimated by, each once: estimates of two say nothing of each other."""
    found = [report.get("estimated_cycles") for report in reports]
    return list(dict.fromkeys(str(one["model"]) for one in found if one))


def _notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    models = _timing_models(before, after)
    if len(models) > 1:
        yield f"{_ESTIMATE} are by the timing models {models[0]} of A and {models[1]} of B: not set against each other"


def _at(report: Any, path: Sequence[str]) -> float | None:
    for key in path:
        report = report.get(key) if isinstance(report, Mapping) else None
    return report if isinstance(report, int | float) else None


def _layers(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[LayerChange]:
    """By name; of several with one name the first with the first."""
    waiting: dict[str, list[Mapping[str, Any]]] = {}
    for layer in after:
        waiting.setdefault(layer["name"], []).append(layer)
    for layer in before:
        mates = waiting.get(layer["name"])
        yield _layer(layer, mates.pop(0) if mates else None)
    for layers in waiting.values():
        yield from (_layer(None, layer) for layer in layers)


def _layer(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> LayerChange:
    there: Mapping[str, Any] = before or after or {}
    counts = [None if one is None else one["instructions"] for one in (before, after)]
    kernels = ("" if before is None else before["kernel"], "" if after is None else after["kernel"])
    shapes = ("" if before is None else _shape(before), "" if after is None else _shape(after))
    return LayerChange(there["name"], counts[0], counts[1], there["op"], kernels, shapes)


def _shape(layer: Mapping[str, Any]) -> str:
    from stages.report.rows import shape

    return shape(layer["shape_out"])
