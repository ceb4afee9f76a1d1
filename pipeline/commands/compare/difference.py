"""What differs between two reports: totals, and layers matched by name, those that matter most first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# What may not grow when a limit is given; the others are shown.
HELD = ("instructions", "cycles", "RAM", "ROM")


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
    """Two reports, by what they are called."""

    names: tuple[str, str]
    totals: tuple[Change, ...]
    layers: tuple[LayerChange, ...]

    def grown(self, limit: float) -> list[Change]:
        """What grew by more than `limit` percent, and an accuracy that fell by more percentage points."""
        return [one for one in self.totals if _is_worse(one, limit)]


def _is_worse(one: Change, limit: float) -> bool:
    if one.name == "accuracy":
        return one.by is not None and -100 * one.by > limit
    if one.name == "mismatches":
        return bool(one.after and one.after > (one.before or 0))
    if one.name not in HELD or one.by is None:
        return False
    return one.by > 0 if not one.before else one.percent is not None and one.percent > limit


def difference(names: tuple[str, str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """Of two contents of report.json."""
    totals = tuple(_totals(before, after))
    layers = sorted(_layers(before["layers"], after["layers"]), key=lambda one: (-abs(one.effect), one.name))
    return Difference(names, totals, tuple(layers))


def _totals(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name, path in {
        "instructions": ("instructions", "total"),
        "cycles": ("cycles", "total"),
        "RAM": ("memory", "ram_bytes"),
        "ROM": ("memory", "rom_bytes"),
        "arena": ("memory", "arena_bytes"),
        "stack": ("memory", "stack_bytes"),
        "weights": ("memory", "weights_bytes"),
        "MACs": ("model", "macs"),
        "mismatches": ("verify", "mismatches"),
        "accuracy": ("verify", "accuracy", "ours"),
    }.items():
        one = Change(name, _at(before, path), _at(after, path))
        if one.before is not None or one.after is not None:
            yield one


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
