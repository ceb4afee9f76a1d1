"""Activity of accelerators and DMA, from the log of the simulator's monitor.

docs/maintainers/contracts.md describes the log. A line is `unit layer begin end amount name`, in cycles of the core's
clock, written when an operation ends. A line of `warn-<unit>` has no length. It says that the device accepted a
doubtful use (`name`) `amount` times.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stages.support.messages import escape

_CORE, _WAIT, _WARN = "core", "wait-", "warn-"


@dataclass(frozen=True)
class Entry:
    """An operation of a unit: begin and end in cycles, `amount` in MACs or bytes."""

    unit: str
    layer: int
    begin: int
    end: int
    amount: int
    name: str


def entries(log: str) -> list[Entry]:
    """Parse the lines of the log, in order."""
    parsed = []
    for line in log.splitlines():
        unit, layer, begin, end, amount, name = line.split(" ", 5)
        parsed.append(Entry(unit, int(layer), int(begin), int(end), int(amount), name))
    return parsed


def device_times(log: Sequence[Entry], layers: int) -> list[dict[str, Any]]:
    """Return the busy cycles of each unit for each inference: `{unit: {total, layers}}`.

    The unit `waiting` is the core while it polls other units. Work ahead of a layer counts in the layer in which it
    happens.
    """
    work = [entry for entry in log if entry.unit != _CORE and not entry.unit.startswith(_WARN)]
    names = sorted({_unit(entry) for entry in work})
    return [
        {name: _busy([entry for entry in work if _unit(entry) == name], starts, layers) for name in names}
        for starts in _inferences(log)
    ]


def timeline(log: Sequence[Entry]) -> list[list[Any]]:
    """Return the first inference's operations: `[unit, layer, begin, end, amount, name]`.

    Cycles count from the start of the inference. For the core, entries are the layers that it begins (amount 0).
    """
    starts = next(iter(_inferences(log)), [])
    if not starts:
        return []
    start, end = starts[0][1], starts[-1][1]
    during = [e for e in log if e.begin <= end and start <= e.end and (e.unit != _CORE or e.layer >= 0)]
    during = [entry for entry in during if not entry.unit.startswith(_WARN)]
    return [
        [entry.unit, entry.layer, entry.begin - start, entry.end - start, entry.amount, entry.name]
        for entry in sorted(during, key=lambda entry: (entry.begin, entry.end))
    ]


def warnings(log: Sequence[Entry], layers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each kind of warning and layer, over all inferences.

    `layers` are model.json's.
    """
    counts: dict[tuple[str, int, str], int] = {}
    for entry in log:
        if entry.unit.startswith(_WARN):
            key = (entry.unit.removeprefix(_WARN), entry.layer, entry.name)
            counts[key] = counts.get(key, 0) + entry.amount
    return [f"{unit}{_of(layer, layers)}: {event}: {count:,}" for (unit, layer, event), count in counts.items()]


def _of(layer: int, layers: Sequence[Mapping[str, Any]]) -> str:
    if not 0 <= layer < len(layers):
        return ""
    return f", layer {layer} ({layers[layer]['op']}) {escape.quoted(layers[layer]['name'])}"


def _unit(entry: Entry) -> str:
    return "waiting" if entry.unit.startswith(_WAIT) else entry.unit


def _inferences(log: Iterable[Entry]) -> Iterable[list[tuple[int, int]]]:
    """Yield, for each inference, the layers with their start times; the last entry is the end."""
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
    """Return the cycles of a unit's operations, in total and in each layer.

    Operations of a unit do not overlap.
    """
    of_layers = [0] * layers
    total = 0
    for (layer, begin), (_, end) in pairwise(starts):
        cycles = sum(max(0, min(entry.end, end) - max(entry.begin, begin)) for entry in entries)
        total += cycles
        if 0 <= layer < layers:
            of_layers[layer] += cycles
    return {"total": total, "layers": of_layers}
