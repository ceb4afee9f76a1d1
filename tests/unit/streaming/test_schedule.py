"""Schedules of random groups, run with rolling buffers that hold one number per row: each read sees the right row."""

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from stages.ir.graph import Graph
from stages.lower.streaming.groups import BandCost, Group, GroupSearch
from stages.lower.streaming.network import Described, RowNetwork
from stages.lower.streaming.outline import Outline, _places
from stages.lower.streaming.row_counts import in_phase
from stages.lower.streaming.row_places import fitted
from stages.lower.streaming.row_window import RowWindow
from stages.lower.streaming.schedule import RowLayer, RowTensor, Schedule, has_unread_rows, simulate

FILL = 5
GROUPS = 400


class _Drawing:
    """A random graph of layers that run by rows, with their windows."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.height = {"x": rng.choice([1, 2, 3, 5, 8, 13, 24, 31])}
        self.row_bytes = {"x": 1}
        self.layers: list[SimpleNamespace] = []
        self.windows: list[RowWindow] = []

    def network(self, pushed: bool, emitted: bool) -> RowNetwork:
        rng, x = self.rng, "x"
        if rng.random() < 0.3:
            x = self.convolution(x)
        for _ in range(rng.randint(1, 4)):
            if rng.random() < 0.1:
                self.element_wise(x)  # nothing reads the result
            x = self.convolution(x) if rng.random() < 0.4 else self.block(x)
            if rng.random() < 0.3:
                x = self.element_wise(x)
        if rng.random() < 0.2 and self.height[x] > 1:
            x = self.layer([x], RowWindow(accumulates=True), 1)
        tensors = {
            name: SimpleNamespace(
                shape=(1, height, self.row_bytes[name], 1),
                dtype="int8",
                bytes=height * self.row_bytes[name],
                constant=False,
                alias_of=None,
            )
            for name, height in self.height.items()
        }
        graph = SimpleNamespace(tensors=tensors, layers=self.layers, inputs=("x",), outputs=(x,))
        overlaid = frozenset(i for i in range(len(self.windows)) if self.rng.random() < 0.8)
        network = RowNetwork(cast("Graph", graph), overlaid=overlaid, pushed=pushed, emitted=emitted)
        network.__dict__["windows"] = self.windows
        return network

    def layer(self, inputs: list[str], window: RowWindow, height: int, row_bytes: int = 0) -> str:
        name = f"t{len(self.layers)}"
        self.height[name] = height
        self.row_bytes[name] = row_bytes or self.row_bytes[inputs[0]]
        self.layers.append(SimpleNamespace(index=len(self.layers), inputs=tuple(inputs), outputs=(name,)))
        self.windows.append(window)
        return name

    def convolution(self, x: str, stride: int = 0, same: bool = False) -> str:
        rng, height = self.rng, self.height[x]
        size = (rng.choice([1, 2, 3, 3, 5]) - 1) * rng.choice([1, 1, 2]) + 1
        stride = stride or rng.choice([1, 1, 2, 3])
        same = same or rng.random() < 0.6 or size > height
        rows = -(-height // stride) if same else (height - size) // stride + 1
        padding = max((rows - 1) * stride + size - height, 0) // 2 if same else 0
        if not same and rng.random() < 0.5:  # the padding of an ONNX file
            padding = rng.randint(0, size - 1)
            rows = (height + padding + rng.randint(0, size - 1) - size) // stride + 1
        return self.layer([x], RowWindow(size, stride, padding, FILL), rows, rng.choice([1, 1, 1, 2]))

    def element_wise(self, *inputs: str) -> str:
        return self.layer(list(inputs), RowWindow(), self.height[inputs[0]])

    def block(self, x: str) -> str:
        """Add two branches; one of them may be the input."""
        stride = self.rng.choice([1, 1, 2])
        y = self.convolution(x, stride, True) if stride > 1 or self.rng.random() < 0.8 else self.element_wise(x)
        for _ in range(self.rng.randint(0, 2)):
            y = self.convolution(y, 1, True) if self.rng.random() < 0.8 else self.element_wise(y)
        z = x if stride == 1 and self.rng.random() < 0.7 else self.convolution(x, stride, True)
        return self.element_wise(*((y, z) if self.rng.random() < 0.5 else (z, y)))


class _Run:
    """The firings of a schedule with the memory that the plan gives to each tensor."""

    def __init__(self, group: Described, schedule: Schedule, capacity: dict[str, int], pushed: str) -> None:
        self.layers = {layer.index: layer for layer in group.layers}
        self.tensors, self.pushed, self.capacity = group.tensors, pushed, capacity
        written = {layer.output for layer in group.layers}
        self.expected = self._whole(group)
        self.root = {name: tensor.place_of or name for name, tensor in self.tensors.items()}
        self.done = dict.fromkeys(self.layers, 0)
        self.first = dict.fromkeys(self.tensors, 0)
        self.end, self.memory = {}, {}
        for name, tensor in self.tensors.items():
            is_complete = name not in written and name != pushed
            self.end[name] = tensor.total if is_complete else tensor.above
            if tensor.place_of:
                continue
            size = tensor.total if tensor.whole else capacity[name]
            self.memory[name] = list(self.expected[name]) if is_complete else [FILL] * min(tensor.above, size)
            self.memory[name] += [None] * (size - len(self.memory[name]))
        self.sums: list[int] = []
        self.emitted: list[int] = []
        for index, first, rows in schedule.firings:
            self._call(index, first, rows)

    @staticmethod
    def _whole(group: Described) -> dict[str, list[int]]:
        """Return all rows of each tensor, with padding, computed from whole tensors."""
        whole: dict[str, list[int]] = {}
        for name, tensor in group.tensors.items():
            layer = next((x for x in group.layers if x.output == name), None)
            if layer is None:
                image = [(37 * row + 11) % 251 for row in range(tensor.height)]
            elif layer.window.accumulates:
                image = [0]
            else:
                inputs = [(whole[x], group.tensors[x].above - layer.window.padding) for x in layer.inputs]
                windows = [
                    [rows[row * layer.window.stride + offset :][: layer.window.size] for rows, offset in inputs]
                    for row in range(layer.height)
                ]
                image = [_value(layer, window) for window in windows]
            whole[name] = [FILL] * tensor.above + image + [FILL] * tensor.below
        return whole

    def _call(self, index: int, first: int, rows: int) -> None:
        if index < 0:
            tensor = self.tensors[self.pushed]
            self._write(self.pushed, self.expected[self.pushed][tensor.above + first :][:rows])
            return
        layer, values = self.layers[index], []
        assert first == self.done[index]
        for row in range(first, first + rows):
            window = []
            for name in layer.inputs:
                start = row * layer.window.stride - layer.window.padding + self.tensors[name].above
                window.append([self._read(name, number) for number in range(start, start + layer.window.size)])
            values.append(_value(layer, window))
        self.done[index] += rows
        if layer.window.accumulates:
            self.sums += values
            return
        self._write(layer.output, values)
        if not self.tensors[layer.output].whole and not any(layer.output in x.inputs for x in self.layers.values()):
            for row in range(first, first + rows):  # the application reads them now
                assert self._read(layer.output, row + self.tensors[layer.output].above) == values[row - first]
                self.emitted.append(row)

    def _read(self, name: str, row: int) -> int:
        tensor, root = self.tensors[name], self.root[name]
        while self.end[name] <= row and self.end[name] >= tensor.above + tensor.height:
            self._write(name, [FILL])
        assert self.first[root] <= row < self.end[name], f"row {row} of {name} is not in memory"
        value = self.memory[root][row - self.first[root]]
        assert value == self.expected[name][row], f"row {row} of {name} has been replaced"
        return cast("int", value)

    def _write(self, name: str, values: list[int]) -> None:
        root = self.root[name]
        if not self.tensors[root].whole:
            end = max(self.end[other] for other in self.root if self.root[other] == root)
            grown = self.end[name] + len(values) - max(end, self.end[name])
            if end + len(values) - self.first[root] > self.capacity[root] and (root == name or grown > 0):
                keep = min([self.end[root], *(self._start(other) for other in self.root if self.root[other] == root)])
                self.memory[root] = self.memory[root][keep - self.first[root] :]
                self.memory[root] += [None] * (self.capacity[root] - len(self.memory[root]))
                self.first[root] = keep
        for value in values:
            self.memory[root][self.end[name] - self.first[root]] = value  # IndexError: the buffer is too small
            self.end[name] += 1
        self.end[root] = max(self.end[root], self.end[name])

    def _start(self, name: str) -> int:
        above = self.tensors[name].above
        starts = [layer.start(self.done[i], above) for i, layer in self.layers.items() if name in layer.inputs]
        return min(starts, default=self.end[name])


def _value(layer: RowLayer, windows: list[list[int]]) -> int:
    return (
        sum((7 * i + 3 * j + layer.index + 1) * v for i, rows in enumerate(windows) for j, v in enumerate(rows)) % 251
    )


def drawn_group(rng: random.Random, *, may_emit: bool = True) -> tuple[Described, str]:
    """Return a group between two cuts of a random network, and the input that is passed by rows.

    may_emit  the application may receive rows of its output
    """
    while True:
        network = _Drawing(rng).network(rng.random() < 0.5, may_emit and rng.random() < 0.5)
        cuts = sorted(network.cuts)
        first = rng.choice([cuts[0], rng.choice(cuts[:-1])])
        end = rng.choice([cut for cut in cuts if cut > first])
        group = network.described(first, end)
        if group is not None and end - first > 1:
            counts = (min(rng.choice([1, 1, 2, 3, 4]), layer.height) for layer in group.layers)
            layers = tuple(map(network.row_layer, range(first, end), counts))
            group = group._replace(layers=in_phase(layers) if rng.random() < 0.5 else layers)
            return group, group.source if network.is_pushed(first) else ""


def test_each_read_sees_its_row() -> None:
    """Schedules that replace rows too early are refused, and buffers have no row too many."""
    rng = random.Random(3)
    cases = "pushed", "emitted", "in place", "window in place", "over the input", "refused", "unread", "sums", "shrunk"
    seen = dict.fromkeys(cases, 0)
    for _ in range(GROUPS):
        group, pushed = drawn_group(rng)
        layers, tensors = group.layers, group.tensors
        schedule = simulate(layers, tensors, pushed)
        assert schedule.overhead >= len(schedule.firings) > 0
        places = [tensor for tensor in tensors.values() if tensor.place_of]
        if not schedule.intact:
            with pytest.raises((AssertionError, IndexError)):
                _Run(group, schedule, schedule.capacity, pushed)
            seen["refused"] += 1
            continue
        run = _Run(group, schedule, schedule.capacity, pushed)
        assert {i: layer.height for i, layer in run.layers.items()} == run.done
        seen["pushed"] += bool(pushed)
        seen["emitted"] += bool(run.emitted)
        if run.emitted:
            assert run.emitted == list(range(layers[-1].height))
        seen["in place"] += any(not tensor.whole for tensor in places)
        seen["over the input"] += any(tensor.whole for tensor in places)
        seen["unread"] += any(has_unread_rows(tensors[layer.output], layers) for layer in layers)
        seen["sums"] += bool(run.sums)
        for name, rows in schedule.capacity.items():
            if any(tensor.place_of == name and tensor.below < tensors[name].below for tensor in places):
                seen["window in place"] += 1  # padding rows may wait there, which this run appends when they are read
                continue
            with pytest.raises((AssertionError, IndexError)):
                _Run(group, schedule, {**schedule.capacity, name: rows - 1}, pushed)
            seen["shrunk"] += 1
    assert all(seen.values()), seen


class _Overlapping(_Run):
    """A run in which the output's memory begins `distance` bytes before that of the input, padding not counted.

    A call may write all its rows before it reads any, as a kernel may.
    """

    def __init__(self, group: Described, schedule: Schedule, distance: int) -> None:
        self.source, self.output, self.distance = group.source, group.layers[-1], distance
        super().__init__(group, schedule, schedule.capacity, "")

    def _call(self, index: int, first: int, rows: int) -> None:
        if index == self.output.index:
            source = self.tensors[self.source]
            end = (first + rows) * self.tensors[self.output.output].row_bytes
            for row in range(source.total):
                if self.distance + (row - source.above) * source.row_bytes < end:
                    self.memory[self.source][row] = None
        super()._call(index, first, rows)


def test_an_output_overlaps_only_dead_rows_of_the_input() -> None:
    rng, seen = random.Random(5), [0, 0]
    for _ in range(GROUPS):
        group, pushed = drawn_group(rng, may_emit=False)
        schedule = simulate(group.layers, group.tensors, pushed)
        if schedule.distance is None or group.tensors[group.layers[-1].output].place_of:
            continue
        _Overlapping(group, schedule, schedule.distance)
        seen[0] += 1
        if schedule.distance > 0:
            with pytest.raises(AssertionError):
                _Overlapping(group, schedule, schedule.distance - 1)
            seen[1] += 1
    assert min(seen) > GROUPS // 10, seen


def test_an_outline_of_parts_is_the_schedule_of_the_whole_group() -> None:
    rng, seen = random.Random(7), dict.fromkeys(("divided", "overlapping", "misaligned", "refused"), 0)
    for _ in range(GROUPS):
        group, pushed = drawn_group(rng)
        alignments = tuple(rng.choice([1, 1, 1, 2]) for _ in group.layers)
        by_index = {layer.index: alignment for layer, alignment in zip(group.layers, alignments, strict=True)}
        expected = simulate(group.layers, group.tensors, pushed, by_index)
        found = group.outline.schedule(group.layers, alignments)
        assert replace(found, progress={}) == replace(expected, firings=[], padding=[], progress={})
        seen["divided"] += len(_places(group.layers, group.tensors)) > 2
        seen["overlapping"] += bool(found.distance)
        seen["misaligned"] += not found.aligned
        seen["refused"] += not found.intact
    assert all(seen.values()), seen


def test_a_search_with_scratch_finds_an_arena_as_small_as_one_without() -> None:
    rng, smaller = random.Random(9), 0
    for _ in range(60):
        network = _Drawing(rng).network(pushed=False, emitted=False)
        count = len(network.graph.layers)
        scratch = {(index, rows): rng.choice([0, 5, 40]) * rows for index in range(count) for rows in range(32)}
        live = [sum(tensor.bytes for tensor in network.graph.tensors.values())] * count
        arguments = network, live, [1.0] * count
        search = GroupSearch(*arguments, lambda index, rows, like: BandCost(rows))
        plain = search.best(1e9, limit=0)
        found = GroupSearch(
            *arguments, lambda index, rows, like, of=scratch: BandCost(rows, scratch=of[index, rows])
        ).best(1e9, limit=0)
        for group in found.groups:
            without = search._evaluated(group.first, group.end, group.described.layers)
            assert without is not None and without.bytes == group.bytes - group.scratch
            assert group.scratch == _most_scratch(group, scratch)
        arena = max([plain.others, *(group.bytes + _most_scratch(group, scratch) for group in plain.groups)])
        assert found.bytes <= arena
        smaller += found.bytes < arena
    assert smaller > 5


def _most_scratch(group: Group, scratch: dict[tuple[int, int], int]) -> int:
    layers = group.described.layers
    most = {x: max(scratch[x.index, rows] for rows in {x.rows, x.height % x.rows} - {0}) for x in layers}
    sums = [most.pop(x) for x in layers if x.window.accumulates]
    return sum(sums) + max(most.values(), default=0)


def test_buffers_hold_fewer_rows_if_first_calls_are_in_phase() -> None:
    """Windows of three rows, three rows per call: a call needs five rows, and no more are in memory."""
    names = "xabcd"
    window = RowWindow(size=3, padding=1, fill=FILL)
    layers = tuple(RowLayer(i, window, (names[i],), names[i + 1], height=25, rows=3) for i in range(4))
    padded = {name: RowTensor(name, 25, 1, 1, FILL, row_bytes=1, whole=name == "x") for name in names[:-1]}
    tensors = padded | {"d": RowTensor("d", 25, 0, 0, FILL, row_bytes=1, whole=True)}
    outline = Outline(layers, tensors)
    assert outline.schedule(layers).capacity == {"a": 7, "b": 7, "c": 7}
    assert outline.schedule(in_phase(layers)).capacity == {"a": 5, "b": 5, "c": 5}


def test_kernels_get_aligned_rows_of_an_image_whose_padding_is_not_aligned() -> None:
    tensors = {"x": RowTensor("x", 6, 1, 1, 0, 10, True), "y": RowTensor("y", 6, 0, 0, 0, 10, True)}
    layer = RowLayer(0, RowWindow(), ("x",), "y", 6, 6)
    assert simulate([layer], tensors, "", {0: 8}).aligned
    assert simulate([replace(layer, rows=4)], tensors, "", {0: 8}).aligned
    assert not simulate([replace(layer, rows=2)], tensors, "", {0: 8}).aligned
    assert not simulate([replace(layer, window=RowWindow(3, 1, 1))], tensors, "", {0: 8}).aligned


@pytest.mark.parametrize(
    ("rows", "height", "size"),
    [
        ([(row // 2, row // 2) for row in range(8)], 4, 1),  # each row twice
        ([(2 * row, 2 * row) for row in range(4)], 8, 1),  # every second row
        ([(max(row - 1, 0) // 2, min(row + 1, 7) // 2) for row in range(8)], 4, 2),  # between two rows
        ([(row * 5 // 7, row * 5 // 7) for row in range(7)], 5, 1),
    ],
)
def test_the_window_of_a_resize_has_no_superfluous_row(rows: list[tuple[int, int]], height: int, size: int) -> None:
    window = fitted(rows, height)
    assert window.size == size
    for row, (first, last) in enumerate(rows):
        assert window.first(row) <= first and last < window.end(row)
