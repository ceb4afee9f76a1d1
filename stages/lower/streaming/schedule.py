"""The order in which a group's layers make rows, and the rows that tensors must hold.

The rule is local, so that the emitted C has it as conditions on row counters:

    Of all layers that can run now, the last one runs. A layer can run if the rows that it needs exist, and if a reader
    of its output needs more rows for its own next call than exist.

Row numbers of a tensor count from the first padding row above the image. Each layer makes `rows` rows in a call, fewer
in the last one. Padding rows below the image are appended one by one when a reader needs them. Rows at the bottom that
no reader needs (a stride leaves some out) are made when a reader has all that it needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from stages.lower.streaming.window import RowWindow

_CALL_COST, _BYTE_COST = 60.0, 0.3  # estimated instructions of a call, and of a moved byte


@dataclass(frozen=True, slots=True)
class RowLayer:
    """A layer of a group.

    inputs  names of the tensors that it reads by rows
    height  rows that it makes; of a layer that accumulates, rows that it reads
    rows    rows of a call
    first   rows of the first call, 0 for `rows`: with these the rows that a reader needs are complete after a call
    """

    index: int
    window: RowWindow
    inputs: tuple[str, ...]
    output: str
    height: int
    rows: int
    first: int = 0

    def count(self, done: int) -> int:
        """Return the rows of the next call."""
        return min(self.first if self.first and not done else self.rows, self.height - done)

    def calls(self) -> dict[int, int]:
        """Return the number of calls by their rows."""
        calls, rest = divmod(self.height - self.first, self.rows)
        numbers = {self.rows: calls}
        for rows in filter(None, (self.first, rest)):
            numbers[rows] = numbers.get(rows, 0) + 1
        return {rows: number for rows, number in numbers.items() if number}

    def start(self, done: int, above: int) -> int:
        """Return the first row that the next call needs; `above` are the input's padding rows."""
        return done * self.window.stride - self.window.padding + above

    def needed(self, done: int, above: int) -> int:
        """Return the row after the last one that the next call needs."""
        return (done + self.count(done) - 1) * self.window.stride + self.window.size - self.window.padding + above

    def end(self, above: int) -> int:
        """Return the row after the last one that any call needs."""
        return (self.height - 1) * self.window.stride + self.window.size - self.window.padding + above


class RowTensor(NamedTuple):
    """A tensor that a group reads or writes by rows.

    height         rows of the image
    above, below   padding rows, of value `fill`
    row_bytes      bytes of a row
    whole          all rows are in memory: an input or output of the group
    place_of       the tensor whose rows it replaces in the same buffer, '' if it has its own
    """

    name: str
    height: int
    above: int
    below: int
    fill: int
    row_bytes: int
    whole: bool
    place_of: str = ""

    @property
    def total(self) -> int:
        """All rows, with padding."""
        return self.above + self.height + self.below


def has_unread_rows(tensor: RowTensor, layers: Sequence[RowLayer]) -> bool:
    """Return whether no layer reads the last rows of a tensor that the group writes."""
    ends = [layer.end(tensor.above) for layer in layers if tensor.name in layer.inputs]
    return bool(ends) and max(ends) < tensor.above + tensor.height


class Firing(NamedTuple):
    """A call: the layer makes `rows` rows from `first` on.

    `layer` is -1 if the caller passes a row of the input.
    """

    layer: int
    first: int
    rows: int


@dataclass
class Schedule:
    """The calls and buffers of a group, from its simulation.

    firings   the calls in order; empty in an outline
    padding   rows of padding that are appended: the number of firings before it, and the tensor; empty in an outline
    calls     number of calls
    capacity  rows that each rolling buffer must hold
    moved     bytes that are moved to the start of rolling buffers
    aligned   whether all rows begin at multiples of the alignment that the layers' kernels need
    intact    whether no row is replaced that a layer still needs
    distance  bytes from the first row of the group's whole output to that of its whole input, not counting padding,
              from which on the output may overlap the input; None if one of them is not whole
    progress  by rows that the last layer has made: the first row of the input that a layer needs after that, None if
              none does; where the first layer has no inputs: the rows that it has made
    """

    firings: list[Firing] = field(default_factory=list)
    padding: list[tuple[int, str]] = field(default_factory=list)
    calls: int = 0
    capacity: dict[str, int] = field(default_factory=dict)
    moved: int = 0
    aligned: bool = True
    intact: bool = True
    distance: int | None = None
    progress: dict[int, int | None] = field(default_factory=dict)

    @property
    def overhead(self) -> float:
        """The estimated instructions of calls with their conditions, and of moves."""
        return _CALL_COST * self.calls + _BYTE_COST * self.moved


def simulate(
    layers: Sequence[RowLayer],
    tensors: Mapping[str, RowTensor],
    pushed: str = "",
    alignments: Mapping[int, int] = MappingProxyType({}),
) -> Schedule:
    """Return the schedule of a group, its layers in execution order.

    pushed      the input that the caller passes row by row, '' if all inputs are in memory
    alignments  bytes at which the rows of a layer's inputs and output must begin, by its index; 1 by default

    Runs twice: the rows that must be held do not depend on the places, but moves and places depend on the capacity.
    """
    capacity = _Simulation(layers, tensors, pushed, alignments, {}).run().capacity
    return _Simulation(layers, tensors, pushed, alignments, capacity).run()


def outline(
    layers: Sequence[RowLayer],
    tensors: Mapping[str, RowTensor],
    pushed: str = "",
    alignments: Mapping[int, int] = MappingProxyType({}),
) -> Schedule:
    """Return the schedule of `simulate` without its firings, in much less time.

    The group is divided where one tensor is alive. Each part runs as if its last layer were the group's last one and
    the layer before it were always ready. So parts are simulated apart, and once: candidates have most in common.
    """
    schedule = Schedule(calls=sum(sum(layer.calls().values()) for layer in layers))
    schedule.calls += tensors[pushed].height if pushed else 0
    places = _places(layers, tensors)
    parts = []
    for begin, end in pairwise(places):
        part = list(layers[max(begin - 1, 0) : end])
        if begin:
            part[0] = replace(part[0], inputs=())
        names = dict.fromkeys(name for layer in part for name in (*layer.inputs, layer.output))
        held = {name: tensors[name] for name in names}
        if end < places[-1]:
            output = part[-1].output
            held[output] = held[output]._replace(whole=True, row_bytes=0)  # belongs to the next part
        aligned = tuple((layer.index, alignments.get(layer.index, 1)) for layer in part)
        parts.append(_simulated(tuple(part), tuple(held.items()), pushed if not begin else "", aligned))
    for simulated in parts:
        schedule.capacity |= simulated.capacity
        schedule.moved += simulated.moved
        schedule.aligned &= simulated.aligned
        schedule.intact &= simulated.intact
    schedule.distance = parts[0].distance if len(parts) == 1 else _distance(parts, layers, tensors)
    return schedule


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
    alignments: tuple[tuple[int, int], ...],
) -> Schedule:
    """Return the schedule of `simulate`; the first layer may have no inputs.

    Candidates ask for the same ones again.
    """
    schedule = simulate(layers, dict(tensors), pushed, dict(alignments))
    schedule.firings, schedule.padding = [], []
    return schedule


class _Simulation:
    """The state of a group: layers' calls so far, and each tensor's rows [first, end) held."""

    def __init__(
        self,
        layers: Sequence[RowLayer],
        tensors: Mapping[str, RowTensor],
        pushed: str,
        alignments: Mapping[int, int],
        capacity: Mapping[str, int],
    ) -> None:
        self.layers = layers
        self.tensors = tensors
        self.pushed = pushed
        self.alignments = alignments
        self.capacity = capacity
        self.schedule = Schedule()
        written = {layer.output for layer in layers}
        complete = {name for name in tensors if name not in written and name != pushed}
        last = layers[-1]
        self.source = next((name for name in complete if tensors[name].whole), "")
        if self.source and tensors[last.output].whole and not last.window.accumulates:
            self.schedule.distance = 0
        self.done = [0] * len(layers)
        self.end = {name: tensor.total if name in complete else tensor.above for name, tensor in tensors.items()}
        self.first = dict.fromkeys(tensors, 0)
        self.readers: dict[str, list[int]] = {name: [] for name in tensors}
        for number, layer in enumerate(layers):
            for name in layer.inputs:
                self.readers[name].append(number)
        self.unread = {layer.output for layer in layers if has_unread_rows(tensors[layer.output], layers)}
        self.root = {name: tensor.place_of or name for name, tensor in tensors.items()}
        self.sharing: dict[str, list[str]] = {name: [] for name in tensors}
        for name, root in self.root.items():
            self.sharing[root].append(name)
        self.schedule.capacity = {
            name: tensor.above for name, tensor in tensors.items() if not tensor.whole and not tensor.place_of
        }
        self._note_progress()

    def run(self) -> Schedule:
        """Run to the end. Raises RuntimeError if a layer cannot finish (an internal error)."""
        while self._step():
            pass
        self.schedule.calls = len(self.schedule.firings)
        if any(done < layer.height for done, layer in zip(self.done, self.layers, strict=True)):
            raise RuntimeError("internal error: a streamed group cannot finish")
        return self.schedule

    def _step(self) -> bool:
        """Let the last layer that can run make rows; return False if none can."""
        for number in range(len(self.layers) - 1, -1, -1):
            layer, done = self.layers[number], self.done[number]
            is_last = number == len(self.layers) - 1
            if not is_last and not self._wanted(layer.output):
                continue
            if done == layer.height:
                if is_last:
                    continue
                self._pad(layer.output)
                return True
            if self._is_ready(layer, done):
                self._call(number, layer, done)
                return True
        return bool(self.pushed) and self._push()

    def _push(self) -> bool:
        tensor, end = self.tensors[self.pushed], self.end[self.pushed]
        if end == tensor.total:
            return False
        if end < tensor.above + tensor.height:
            self.schedule.firings.append(Firing(-1, end - tensor.above, 1))
            self._append(self.pushed, 1, by_kernel=False)
        else:
            self._pad(self.pushed)
        return True

    def _pad(self, name: str) -> None:
        self.schedule.padding.append((len(self.schedule.firings), name))
        self._append(name, 1, by_kernel=False)

    def _is_ready(self, layer: RowLayer, done: int) -> bool:
        return all(layer.needed(done, self.tensors[name].above) <= self.end[name] for name in layer.inputs)

    def _wanted(self, name: str) -> bool:
        above, end = self.tensors[name].above, self.end[name]
        for number in self.readers[name]:
            layer, done = self.layers[number], self.done[number]
            if done < layer.height and layer.needed(done, above) > end:
                return True
            if done == layer.height and name in self.unread and end < above + self.tensors[name].height:
                return True
        return False

    def _call(self, number: int, layer: RowLayer, done: int) -> None:
        rows = layer.count(done)
        for name in layer.inputs:
            tensor = self.tensors[name]
            self._align(layer, name, layer.start(done, tensor.above))
        self.schedule.firings.append(Firing(layer.index, done, rows))
        if self.schedule.distance is not None and number == len(self.layers) - 1:
            self._keep_apart(layer, done + rows)
        self.done[number] += rows
        if not layer.window.accumulates:
            self._append(layer.output, rows, by_kernel=True)
            self._align(layer, layer.output, self.end[layer.output] - rows)
        if number == len(self.layers) - 1:
            self._note_progress()

    def _note_progress(self) -> None:
        starts = [layer.start(done, 0) for layer, done in self._unfinished(self.source)] if self.source else []
        rows = min(starts, default=None) if self.layers[0].inputs else self.done[0]
        self.schedule.progress[self.done[-1]] = rows

    def _keep_apart(self, layer: RowLayer, end: int) -> None:
        """Note where the input must begin, so that output rows before `end` replace none in use."""
        source = self.tensors[self.source]
        needed = [x.start(done, 0) for x, done in self._unfinished(self.source)]
        if needed:
            first = max(min(needed), -source.above) * source.row_bytes
            distance = end * self.tensors[layer.output].row_bytes - first
            self.schedule.distance = max(self.schedule.distance or 0, distance)

    def _unfinished(self, name: str) -> list[tuple[RowLayer, int]]:
        """Return the readers of a tensor that have rows to make, with the rows that they have made."""
        readers = [(self.layers[number], self.done[number]) for number in self.readers[name]]
        return [(layer, done) for layer, done in readers if done < layer.height]

    def _align(self, layer: RowLayer, name: str, row: int) -> None:
        root = self.root[name]
        begin = self.tensors[root].above if self.tensors[root].whole else self.first[root]  # at an aligned address
        offset = (row - begin) * self.tensors[name].row_bytes
        self.schedule.aligned &= offset % self.alignments.get(layer.index, 1) == 0

    def _append(self, name: str, rows: int, *, by_kernel: bool) -> None:
        tensor, root = self.tensors[name], self.root[name]
        if root != name:  # its rows take the place of rows that exist, except for padding
            if tensor.whole:
                self.schedule.intact &= self._is_free(root, self.end[name] + rows)
            if not by_kernel:
                self._append(root, rows, by_kernel=False)
            self.end[name] += rows
            return
        if not tensor.whole:
            kept = min(self._keep(other) for other in self.sharing[name])
            held = self.end[name] + rows - kept
            self.schedule.capacity[name] = max(self.schedule.capacity[name], held)
            if name in self.capacity and self.end[name] + rows - self.first[name] > self.capacity[name]:
                self.schedule.moved += (self.end[name] - kept) * tensor.row_bytes
                self.first[name] = kept
        self.end[name] += rows

    def _is_free(self, name: str, end: int) -> bool:
        """Return whether no layer needs rows before `end` any more."""
        above = self.tensors[name].above
        return all(layer.start(done, above) >= end for layer, done in self._unfinished(name))

    def _keep(self, name: str) -> int:
        """Return the first row that a reader still needs."""
        above = self.tensors[name].above
        starts = [self.layers[number].start(self.done[number], above) for number in self.readers[name]]
        return min([self.end[name], *starts])
