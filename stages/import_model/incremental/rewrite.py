"""Write the network that computes new frames, from a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stages.import_model.incremental.checks import check_frames, check_gain, sound_source
from stages.import_model.incremental.plan import Plan, default_frames, plan, window_only
from stages.import_model.incremental.rows import Range
from stages.import_model.incremental.rules import SeesAllRows
from stages.import_model.incremental.writer import Writer
from stages.import_model.normalize.graph import one_graph
from stages.ir.arrays import Array
from stages.ir.model_info import ModelInfo, TensorInfo
from stages.ir.models.complexity import macs
from stages.ir.models.tflite_reader import read
from stages.ir.reference.probe import tensor_values
from stages.support.messages.operator_error import operator_label
from stages.support.messages.wording import several


@dataclass(frozen=True)
class Incremental:
    """A network that gets new frames only.

    data, info  its TFLite file, in the form of normalized files
    whole       the original network with a window before it: the same outputs from the same frames
    frames      new frames per run
    window      frames of the whole window
    axis        axis of time in the input's shape
    notes       sentences for the user
    """

    data: bytes
    info: ModelInfo
    whole: bytes
    frames: int
    window: int
    axis: int
    notes: tuple[str, ...]

    @property
    def facts(self) -> dict[str, int]:
        """The entry in import.json."""
        return {"frames": self.frames, "window": self.window}


def incremental(data: bytes, info: ModelInfo, name: str, *, frames: int | None, axis: int | None) -> Incremental:
    """Return the normalized network `data` (called `name`) with rows kept between runs.

    frames  new frames per run; None: the fewest with which all layers that can reuse rows do so
    axis    axis of time; None: the first axis after the batch

    Raises StageError if there is no window of time, if the strides do not divide `frames`, or if nothing can be reused.
    """
    source, rows = sound_source(info, name, axis)
    default = default_frames(info, source, rows)
    check_frames(info, name, rows, frames, default)
    planned = plan(info, source, rows, frames or default)
    new = _Rewriting(data, info, name, planned, source).file()
    new_info = read(new, name)
    check_gain(info, name, planned, new_info, default)
    notes = _notes(info, planned, rows.count, macs(info), macs(new_info))
    whole = _Rewriting(data, info, name, window_only(source, rows, planned.frames), source).file()
    return Incremental(new, new_info, whole, planned.frames, rows.count, rows.axis, notes)


def _notes(info: ModelInfo, planned: Plan, window: int, before: int, after: int) -> tuple[str, ...]:
    frames = "1 new frame" if planned.frames == 1 else f"{planned.frames} new frames"
    takes = f"incremental: each run takes {frames} of a window of {window} and computes {after:,} of {before:,} MACs"
    notes = [f"{takes}; before the first frame the window holds zeros"]
    partly = [
        f"{operator_label(number, info.operators[number].op, info.tensors[info.operators[number].outputs[0]].name)} "
        f"{reason}"
        for number, reason in planned.whole.items()
        if not isinstance(reason, SeesAllRows)
    ]
    return (*notes, *([f"computed over the whole window in each run: {several(partly, 3)}"] if partly else []))


@dataclass
class _Rewriting:
    """The state of one rewriting.

    ranges  tensors of the new graph with rows of a tensor of the original, by its number
    """

    data: bytes
    info: ModelInfo
    name: str
    planned: Plan
    source: int
    ranges: dict[int, list[tuple[Range, int]]] = field(default_factory=dict)
    known: dict[tuple[int, Range], int] = field(default_factory=dict)

    def file(self) -> bytes:
        """Return the file of the new network."""
        self.writer = Writer(one_graph(self.data, self.name, 0), self.info)
        self.silence = self._silence()
        rows = self.planned.rows[self.source]
        new_input = self.writer.rows_like(self.source, rows, self.planned.frames)
        self._finish(self.source, {(rows.count - self.planned.frames, rows.count): new_input})
        for operator in self.info.operators:
            step = self.planned.steps.get(operator.index)
            if step is None:
                inputs = {at: self._whole(index) for at, index in enumerate(operator.inputs) if index >= 0}
                self.writer.copied(operator, inputs, operator.outputs)
                continue
            results: dict[int, dict[Range, int]] = {index: {} for index in operator.outputs}
            needed = [self.planned.pieces[index].computed for index in results if index in self.planned.pieces]
            for part in dict.fromkeys(part for parts in needed for part in parts):
                inputs = {at: self._rows(operator.inputs[at], present) for at, present in step.reads(part).items()}
                suffix = "/begin" if any(part == self._head(index) for index in results) else ""
                written = step.write(self.writer, part, inputs, suffix)
                for index, tensor in zip(operator.outputs, written, strict=True):
                    results[index][part] = tensor
            for index, tensors in results.items():
                if index in self.planned.pieces:
                    self._finish(index, tensors)
        return self.writer.finish([new_input], [self._output(index) for index in self.info.outputs])

    def _head(self, index: int) -> Range | None:
        return self.planned.pieces[index].head if index in self.planned.pieces else None

    def _whole(self, index: int) -> int:
        """Return a tensor with all rows."""
        return self._rows(index, (0, self.planned.rows[index].count)) if index in self.planned.rows else index

    def _output(self, index: int) -> int:
        """Return an output of the graph, with its original name."""
        tensor = self._whole(index)
        self.writer.rename(tensor, index)
        return tensor

    def _rows(self, index: int, part: Range) -> int:
        """Return a tensor with these rows of a tensor of the original network."""
        if (index, part) not in self.known:
            rows = self.planned.rows[index]
            slices = []
            for present, tensor in self.ranges[index]:
                wanted = max(part[0], present[0]), min(part[1], present[1])
                if wanted[0] < wanted[1]:
                    slices.append(self.writer.part_of(tensor, rows, present, wanted))
            self.known[index, part] = self.writer.joined(slices, rows)
        return self.known[index, part]

    def _finish(self, index: int, tensors: Mapping[Range, int]) -> None:
        """Join computed rows with those of the last run, and keep what the next run needs."""
        pieces, rows = self.planned.pieces[index], self.planned.rows[index]
        ranges = [(part, tensors[part]) for part in pieces.computed]
        low, high = pieces.kept
        if low < high:
            step, writer = rows.step(self.planned.frames), self.writer
            variable = writer.rows_like(index, rows, high - low, "/past", variable=True)
            present = low, pieces.fresh[1]
            joined = writer.joined([writer.read_variable(variable), tensors[pieces.fresh]], rows)
            ranges[-1] = present, joined
            kept = low + step, high + step
            first = np.take(self.silence[index], range(kept[0] * rows.unit, kept[1] * rows.unit), rows.axis)
            initial = writer.constant_like(index, first, "/past/initial")
            writer.assign_variable(variable, writer.part_of(joined, rows, present, kept, "/next"), initial)
        self.ranges[index] = ranges

    def _silence(self) -> dict[int, Array]:
        """Return the tensors with kept rows, on a window of zeros."""
        kept = [index for index, pieces in self.planned.pieces.items() if pieces.kept[1]]
        zeros = _zeros(self.info.tensors[self.source])
        needed, outputs = set[int](), {*kept} - {self.source}
        for operator in reversed(self.info.operators):
            if outputs & {*operator.outputs}:
                needed.add(operator.index)
                outputs |= {*operator.inputs}
        values: dict[int, Array] = {self.source: zeros}
        if needed:
            graph = one_graph(self.data, self.name, 0)
            graph.make_constant({self.source: zeros})
            graph.remove({operator.index for operator in self.info.operators} - needed)
            graph.inputs, graph.outputs = [], [index for index in kept if index != self.source]
            values |= tensor_values(graph.pack(), self.name)
        return values


def _zeros(tensor: TensorInfo) -> Array:
    """Return the integers or floats of a tensor of zeros."""
    zero = int(tensor.zero_point[0]) if tensor.zero_point.size else 0
    return np.full(tensor.shape, zero, tensor.dtype)
