"""Schedules of a group without their calls, in less time: candidates have most in common.

The group is divided where one tensor is alive. Each part runs as if its last layer were the group's last one and the
layer before it were always ready. So parts are simulated apart, and once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from stages.lower.streaming.schedule import RowLayer, RowTensor, Schedule, simulate

_Key = tuple[tuple[RowLayer, ...], tuple[int, ...]]


class _Part(NamedTuple):
    """Layers [first, end) of a group, their tensors, and known schedules.

    is_first  whether it begins with the group's first layer; else with the layer before the part
    """

    first: int
    end: int
    is_first: bool
    tensors: tuple[tuple[str, RowTensor], ...]
    known: dict[_Key, Schedule]


class Outline:
    """The schedules of a group for any rows per call of its layers.

    pushed  the input that the caller passes row by row, '' if all inputs are in memory
    """

    def __init__(self, layers: Sequence[RowLayer], tensors: Mapping[str, RowTensor], pushed: str = "") -> None:
        self._tensors = tensors
        self._pushed = pushed
        self._parts: list[_Part] = []
        places = _places(layers, tensors)
        for begin, end in pairwise(places):
            inputs = [name for layer in layers[begin:end] for name in (*layer.inputs, layer.output)]
            held = {name: tensors[name] for name in [layers[begin - 1].output] * (begin > 0) + inputs}
            if end < places[-1]:
                output = layers[end - 1].output
                held[output] = held[output]._replace(whole=True, row_bytes=0)  # belongs to the next part
            self._parts.append(_Part(max(begin - 1, 0), end, not begin, tuple(held.items()), {}))

    def schedule(
        self, layers: tuple[RowLayer, ...], alignments: tuple[int, ...] = (), *, overlaps: bool = True
    ) -> Schedule:
        """Return the schedule of `simulate` without its firings.

        layers      those of the group, which may differ in the rows of their calls
        alignments  of each layer's rows in bytes, 1 by default
        overlaps    find `distance` too
        """
        alignments = alignments or (1,) * len(layers)
        schedule = Schedule(calls=sum(-((x.first - x.height) // x.rows) + (x.first > 0) for x in layers))
        schedule.calls += self._tensors[self._pushed].height if self._pushed else 0
        parts = [self._part(part, layers, alignments) for part in self._parts]
        for part in parts:
            schedule.capacity |= part.capacity
            schedule.moved += part.moved
            schedule.aligned &= part.aligned
            schedule.intact &= part.intact
        if overlaps:
            schedule.distance = parts[0].distance if len(parts) == 1 else _distance(parts, layers, self._tensors)
        return schedule

    def _part(self, part: _Part, layers: tuple[RowLayer, ...], alignments: tuple[int, ...]) -> Schedule:
        key = layers[part.first : part.end], alignments[part.first : part.end]
        if key not in part.known:
            before, *others = key[0]
            held = key[0] if part.is_first else (replace(before, inputs=()), *others)
            part.known[key] = _simulated(held, part.tensors, self._pushed if part.is_first else "", key[1])
        return part.known[key]


def _places(layers: Sequence[RowLayer], tensors: Mapping[str, RowTensor]) -> list[int]:
    """Return the places before a layer with one live tensor that replaces none; and the end."""
    last = {name: number for number, layer in enumerate(layers) for name in layer.inputs}
    places, alive = [0], set(tensors) - {layer.output for layer in layers}
    for number, layer in enumerate(layers[:-1]):
        alive = {name for name in alive if last[name] > number} | {layer.output}
        if alive == {layer.output} and not tensors[layer.output].place_of:
            places.append(number + 1)
    return [*places, len(layers)]


def _distance(parts: Sequence[Schedule], layers: Sequence[RowLayer], tensors: Mapping[str, RowTensor]) -> int | None:
    """Return the distance of a group of several parts."""
    source, output = tensors[layers[0].inputs[0]], tensors[layers[-1].output]
    if not (source.whole and output.whole) or layers[-1].window.accumulates:
        return None
    needed = parts[0].progress
    for part in parts[1:]:
        needed = {end: needed[rows] for end, rows in part.progress.items() if rows is not None}
    apart = [
        end * output.row_bytes - max(first, -source.above) * source.row_bytes
        for end, first in needed.items()
        if end and first is not None
    ]
    return max([0, *apart])


@lru_cache(maxsize=1 << 16)
def _simulated(
    layers: tuple[RowLayer, ...],
    tensors: tuple[tuple[str, RowTensor], ...],
    pushed: str,
    alignments: tuple[int, ...],
) -> Schedule:
    """Return the schedule of `simulate`; the first layer may have no inputs.

    Groups have parts in common, and the rounds of counting too.
    """
    aligned = {layer.index: bytes_ for layer, bytes_ in zip(layers, alignments, strict=True)}
    schedule = simulate(layers, dict(tensors), pushed, aligned)
    schedule.firings, schedule.padding = [], []
    return schedule
