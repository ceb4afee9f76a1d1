"""What devices beside the core did, from the log that the simulator's monitor writes (docs/maintainers/contracts.md).

A line is `unit layer begin end amount name`, in cycles of the core's clock; it is written when something is done.
One of `warn-<unit>` has no length: `amount` times silicon accepted what nobody means, which `name` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stages.support.messages import escape

_CORE, _WAIT, _WARN = "core", "wait-", "warn-"


@dataclass(frozen=True)
class Entry:
    """One operation of a unit, in cycles; `amount` is its multiply-accumulates or bytes."""

    unit: str
    layer: int
    begin: int
    end: int
    amount: int
    name: str


def entries(log: str) -> list[Entry]:
    """The lines of the log, in its order."""
    found = []
    for line in log.splitlines():
        unit, layer, begin, end, amount, name = line.split(" ", 5)
        found.append(Entry(unit, int(layer), int(begin), int(end), int(amount), name))
    return found


def device_times(log: Sequence[Entry], layers: int) -> list[dict[str, Any]]:
    """For each inference the cycles in which each unit was busy: `{unit: {total, layers}}`.

    `waiting` is one of the units: the core, polling the others. What a unit does ahead of a layer counts in the layer
    during which it happens.
    """
    work = [entry for entry in log if entry.unit != _CORE and not entry.unit.startswith(_WARN)]
    names = sorted({_unit(entry) for entry in work})
    return [
        {name: _busy([entry for entry in work if _unit(entry) == name], starts, layers) for name in names}
        for starts in _inferences(log)
    ]


def timeline(log: Sequence[Entry]) -> list[list[Any]]:
    """The operations during the first inference, the earliest first: `[unit, layer, begin, end, amount, name]`.

    Cycles count from the inference's beginning. The core's are the layers that it enters (amount 0).
    """
    starts = next(iter(_inferences(log)), [])
    if not starts:
        return []
    first, last = starts[0][1], starts[-1][1]
    during = [e for e in log if e.begin <= last and first <= e.end and (e.unit != _CORE or e.layer >= 0)]
    during = [entry for entry in during if not entry.unit.startswith(_WARN)]
    return [
        [entry.unit, entry.layer, entry.begin - first, entry.end - first, entry.amount, entry.name]
        for entry in sorted(during, key=lambda entry: (entry.begin, entry.end))
    ]


def warnings(log: Sequence[Entry], layers: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each thing in each layer that a device counted, over all inferences; `layers` are model.json's."""
    counts: dict[tuple[str, int, str], int] = {}
    for entry in log:
        if entry.unit.startswith(_WARN):
            key = (entry.unit.removeprefix(_WARN), entry.layer, entry.name)
            counts[key] = counts.get(key, 0) + entry.amount
    return [f"{unit}{_of(layer, layers)}: {what}: {count:,}" for (unit, layer, what), count in counts.items()]


def _of(layer: int, layers: Sequence[Mapping[str, Any]]) -> str:
    if not 0 <= layer < len(layers):
        return ""
    return f", layer {layer} ({layers[layer]['op']}) {escape.quoted(layers[layer]['name'])}"


def _unit(entry: Entry) -> str:
    return "waiting" if entry.unit.startswith(_WAIT) else entry.unit


def _inferences(log: Iterable[Entry]) -> Iterable[list[tuple[int, int]]]:
    """For each inference the layers entered, with their times; the last is its end."""
    starts: list[tuple[int, int]] = []
    for entry in log:
        if entry.unit != _CORE:
            continue
        if entry.layer == 0:
            if starts:
                yield starts
            starts = []
        starts.append((entry.layer, entry.begin))
    if starts:
        yield starts


def _busy(entries: Sequence[Entry], starts: Sequence[tuple[int, int]], layers: int) -> dict[str, Any]:
    """Cycles of the operations within the inference, and within each layer; operations of a unit do not overlap."""
    each = [0] * layers
    total = 0
    for (layer, begin), (_, end) in pairwise(starts):
        cycles = sum(max(0, min(entry.end, end) - max(entry.begin, begin)) for entry in entries)
        total += cycles
        if 0 <= layer < layers:
            each[layer] += cycles
    return {"total": total, "layers": each}
