"""Compare two reports: totals, and layers matched by name, the largest changes first."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Figures that fail_above= applies to.
INSTRUCTIONS, _CYCLES, _ESTIMATE = "instructions", "cycles", "estimated cycles"
LIMITED = (INSTRUCTIONS, _CYCLES, _ESTIMATE, "RAM", "ROM")


@dataclass(frozen=True)
class Change:
    """A figure before and after; None if a report does not have it."""

    name: str
    before: float | None
    after: float | None

    @property
    def by(self) -> float | None:
        """The difference; None if a side has no figure."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def percent(self) -> float | None:
        """The difference in percent of `before`; None if that is 0 or unknown."""
        return None if self.by is None or not self.before else 100 * self.by / self.before


@dataclass(frozen=True)
class LayerChange(Change):
    """A layer's instructions; kernels and shapes of both sides, '' if a side lacks the layer."""

    op: str = ""
    kernels: tuple[str, str] = ("", "")
    shapes: tuple[str, str] = ("", "")

    @property
    def effect(self) -> float:
        """Instructions that the change adds to the run."""
        return (self.after or 0) - (self.before or 0)


@dataclass(frozen=True)
class Difference:
    """The comparison of two reports.

    names     how messages call the two sides
    layers    empty if the sides count different things
    counters  the unit that each side counts
    counted   heading of the layers' figures; `cycles / instructions` for a report of an accelerator and one of a core:
              in the simulator, a cycle is an instruction of the core
    notes     totals that are not compared, and why
    """

    names: tuple[str, str]
    totals: tuple[Change, ...]
    layers: tuple[LayerChange, ...]
    counters: tuple[str, str] = (INSTRUCTIONS, INSTRUCTIONS)
    counted: str = INSTRUCTIONS
    notes: tuple[str, ...] = ()

    @property
    def one_counter(self) -> bool:
        """Whether both sides count the same thing."""
        return len(set(self.counters)) == 1

    def grown(self, limit: float) -> list[Change]:
        """Return figures that grew by more than `limit` percent.

        An accuracy is included if it fell by more than `limit` percentage points.
        """
        return [change for change in self.totals if _is_worse(change, limit, (*LIMITED, *self.counters, self.counted))]


def _is_worse(change: Change, limit: float, limited: Container[str]) -> bool:
    if change.name == "accuracy":
        return change.by is not None and -100 * change.by > limit
    if change.name == "mismatches":
        return bool(change.after and change.after > (change.before or 0))
    if change.name not in limited or change.by is None:
        return False
    return change.by > 0 if not change.before else change.percent is not None and change.percent > limit


def difference(names: tuple[str, str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """Compare the contents of two report.json files."""
    totals = tuple(_totals(before, after))
    counters, notes = (_counter(before), _counter(after)), tuple(_notes(before, after))
    if counters[0] != counters[1]:
        return Difference(names, totals, (), counters, notes=notes)
    layers = sorted(_layers(before["layers"], after["layers"]), key=lambda change: (-abs(change.effect), change.name))
    return Difference(names, totals, tuple(layers), counters, _counted_by((before, after), counters[0]), notes)


def _counter(report: Mapping[str, Any]) -> str:
    """Return what a report counts: instructions or, from a board, such as `cycles by DWT`."""
    ran = report.get("ran")
    return INSTRUCTIONS if not isinstance(ran, Mapping) else str(ran.get("counter") or "nothing")


def _counted_by(reports: Sequence[Mapping[str, Any]], counter: str) -> str:
    """Return the heading for this counter: each name that the reports use, once."""
    headings = [_CYCLES if report.get("cycles") else counter for report in reports if _counter(report) == counter]
    return " / ".join(dict.fromkeys(headings))


def _counted(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Yield a row per counter: two if one side has cycles of a board, the other instructions."""
    path = (INSTRUCTIONS, "total")
    sides = [(_counter(report), _at(report, path)) for report in (before, after)]
    for counter in dict.fromkeys(counter for counter, _ in sides):
        yield Change(
            _counted_by((before, after), counter), *(count if counter == name else None for name, count in sides)
        )


def _totals(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the totals that at least one report has."""
    yield from (change for change in _counted(before, after) if change.before is not None or change.after is not None)
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
        change = Change(name, _at(before, path), _at(after, path))
        if change.before is not None or change.after is not None:
            yield change


def _timing_models(*reports: Mapping[str, Any]) -> list[str]:
    """Return the timing models of the reports, each once. Their estimates are not comparable."""
    estimates = [report.get("estimated_cycles") for report in reports]
    return list(dict.fromkeys(str(estimate["model"]) for estimate in estimates if estimate))


def _notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    models = _timing_models(before, after)
    if len(models) > 1:
        yield f"{_ESTIMATE} not compared: A uses timing model {models[0]}, B uses {models[1]}"


def _at(report: Any, path: Sequence[str]) -> float | None:
    for key in path:
        report = report.get(key) if isinstance(report, Mapping) else None
    return report if isinstance(report, int | float) else None


def _layers(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[LayerChange]:
    """Yield the pairs of layers with one name; equal names in their order."""
    waiting: dict[str, list[Mapping[str, Any]]] = {}
    for layer in after:
        waiting.setdefault(layer["name"], []).append(layer)
    for layer in before:
        mates = waiting.get(layer["name"])
        yield _layer(layer, mates.pop(0) if mates else None)
    for layers in waiting.values():
        yield from (_layer(None, layer) for layer in layers)


def _layer(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> LayerChange:
    layer: Mapping[str, Any] = before or after or {}
    counts = [None if item is None else item["instructions"] for item in (before, after)]
    kernels = ("" if before is None else before["kernel"], "" if after is None else after["kernel"])
    shapes = ("" if before is None else _shape(before), "" if after is None else _shape(after))
    return LayerChange(layer["name"], counts[0], counts[1], layer["op"], kernels, shapes)


def _shape(layer: Mapping[str, Any]) -> str:
    from stages.report.rows import shape

    return shape(layer["shape_out"])
