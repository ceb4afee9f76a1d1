"""The order in which a group's layers make rows, and the rows that tensors must hold.

The rule is local, so that the emitted C has it as conditions on row counters:

    Of all layers that can run now, the last one runs. A layer can run if the rows that it needs exist, and if a reader
    of its output needs more rows for its own next call than exist.

Row numbers of a tensor count from the first padding row above the image. Each layer makes `rows` rows in a call, fewer
in the last one. Padding rows below the image are appended one by one when a reader needs them. Rows at the bottom that
no reader needs (a stride leaves some out) are made when a reader has all that it needs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from stages.lower.streaming.row_window import RowWindow

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

    def __hash__(self) -> int:
        """Return a hash of few fields: the search looks up layers very often."""
        return hash((self.index, self.rows, self.first))

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
        return self.window.first(done) + above

    def needed(self, done: int, above: int) -> int:
        """Return the row after the last one that the next call needs."""
        return self.window.end(done + self.count(done) - 1) + above

    def end(self, above: int) -> int:
        """Return the row after the last one that any call needs."""
        return self.window.end(self.height - 1) + above


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
    """
    return _Simulation(layers, tensors, pushed, alignments).run()


class _Access(NamedTuple):
    """Rows [begin, end) appended to a rolling buffer, or a row that must be aligned.

    kept       the first row that a reader still needs when rows are appended
    alignment  of row `begin` in bytes, 0 where rows are appended
    """

    name: str
    begin: int
    end: int = 0
    kept: int = 0
    alignment: int = 0
    row_bytes: int = 0


class _Simulation:
    """The state of a group: layers' calls so far, and the end of each tensor's rows.

    accesses  to rolling buffers, whose capacity is known at the end
    goal      the row after the last one that each layer's next call needs, not counting padding
    wanted    the end that each tensor must have for the next calls of its readers
    least     the first row of each tensor that a reader still needs, if it exists
    """

    def __init__(
        self,
        layers: Sequence[RowLayer],
        tensors: Mapping[str, RowTensor],
        pushed: str,
        alignments: Mapping[int, int],
    ) -> None:
        self.layers = layers
        self.tensors = tensors
        self.pushed = pushed
        self.alignments = alignments
        self.accesses: list[_Access] = []
        self.schedule = Schedule()
        written = {layer.output for layer in layers}
        complete = {name for name in tensors if name not in written and name != pushed}
        last = layers[-1]
        self.source = next((name for name in complete if tensors[name].whole), "")
        if self.source and tensors[last.output].whole and not last.window.accumulates:
            self.schedule.distance = 0
        self.done = [0] * len(layers)
        self.goal = [layer.needed(0, 0) for layer in layers]
        self.end = {name: tensor.total if name in complete else tensor.above for name, tensor in tensors.items()}
        self.wanted = dict.fromkeys(tensors, 0)
        self.least = {name: tensor.total for name, tensor in tensors.items()}
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
        self._note_needs(tensors)
        self._note_progress()

    def run(self) -> Schedule:
        """Run to the end. Raises RuntimeError if a layer cannot finish (an internal error)."""
        while self._step():
            pass
        self.schedule.calls = len(self.schedule.firings)
        if any(done < layer.height for done, layer in zip(self.done, self.layers, strict=True)):
            raise RuntimeError("internal error: a streamed group cannot finish")
        self._place()
        return self.schedule

    def _place(self) -> None:
        """Note moves, and whether rows are aligned: both depend on the capacity of the buffers."""
        first, capacity = dict.fromkeys(self.tensors, 0), self.schedule.capacity
        for name, begin, end, kept, alignment, row_bytes in self.accesses:
            if alignment:
                self.schedule.aligned &= (begin - first[name]) * row_bytes % alignment == 0
            elif end - first[name] > capacity[name]:
                self.schedule.moved += (begin - kept) * row_bytes
                first[name] = kept

    def _step(self) -> bool:
        """Let the last layer that can run make rows; return False if none can."""
        last = len(self.layers) - 1
        for number in range(last, -1, -1):
            layer, done = self.layers[number], self.done[number]
            if number < last and self.wanted[layer.output] <= self.end[layer.output]:
                continue
            if done == layer.height:
                if number == last:
                    continue
                self._pad(layer.output)
                return True
            if self._is_ready(number, layer):
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

    def _is_ready(self, number: int, layer: RowLayer) -> bool:
        goal = self.goal[number]
        for name in layer.inputs:  # noqa: SIM110 - a generator takes twice the time
            if self.end[name] < goal + self.tensors[name].above:
                return False
        return True

    def _call(self, number: int, layer: RowLayer, done: int) -> None:
        rows, alignment = layer.count(done), self.alignments.get(layer.index, 1)
        if alignment > 1:
            for name in layer.inputs:
                self._align(name, layer.start(done, self.tensors[name].above), alignment)
        self.schedule.firings.append(Firing(layer.index, done, rows))
        if self.schedule.distance is not None and number == len(self.layers) - 1:
            self._keep_apart(layer, done + rows)
        self.done[number] += rows
        self.goal[number] = layer.needed(done + rows, 0)
        self._note_needs(layer.inputs)
        if not layer.window.accumulates:
            self._append(layer.output, rows, by_kernel=True)
            if alignment > 1:
                self._align(layer.output, self.end[layer.output] - rows, alignment)
        if number == len(self.layers) - 1:
            self._note_progress()

    def _note_needs(self, names: Iterable[str]) -> None:
        """Note which rows of these tensors their readers need next."""
        for name in names:
            above, wanted, least = self.tensors[name].above, 0, self.tensors[name].total
            for number in self.readers[name]:
                layer, done = self.layers[number], self.done[number]
                if done < layer.height:
                    wanted = max(wanted, self.goal[number] + above)
                elif name in self.unread:
                    wanted = max(wanted, above + self.tensors[name].height)
                least = min(least, layer.start(done, above))
            self.wanted[name], self.least[name] = wanted, least

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

    def _align(self, name: str, row: int, alignment: int) -> None:
        root = self.root[name]
        row_bytes = self.tensors[name].row_bytes
        if self.tensors[root].whole:  # its first row without padding is at an aligned address
            self.schedule.aligned &= (row - self.tensors[root].above) * row_bytes % alignment == 0
        else:
            self.accesses.append(_Access(root, row, alignment=alignment, row_bytes=row_bytes))

    def _append(self, name: str, rows: int, *, by_kernel: bool) -> None:
        tensor, root = self.tensors[name], self.root[name]
        if root != name:  # its rows take the place of rows that exist, except for padding
            if tensor.whole:
                self.schedule.intact &= self._is_free(root, self.end[name] + rows)
            if not by_kernel:
                self._append(root, rows, by_kernel=False)
            self.end[name] += rows
            return
        end = self.end[name] + rows
        if not tensor.whole:
            kept = min(min(self.end[other], self.least[other]) for other in self.sharing[name])
            self.schedule.capacity[name] = max(self.schedule.capacity[name], end - kept)
            self.accesses.append(_Access(name, self.end[name], end, kept, row_bytes=tensor.row_bytes))
        self.end[name] = end

    def _is_free(self, name: str, end: int) -> bool:
        """Return whether no layer needs rows before `end` any more."""
        above = self.tensors[name].above
        return all(layer.start(done, above) >= end for layer, done in self._unfinished(name))
