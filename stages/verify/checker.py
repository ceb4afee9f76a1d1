"""Runs LiteRT on every recorded input, compares outputs and traces, and says which layer differs first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.ir.reference.partitions import PartitionedReference
from stages.support.messages import escape
from stages.verify.compare import Difference, difference
from stages.verify.float_ties import Tied, rounds_floats, tied
from stages.verify.formulas import Formulas
from stages.verify.graph_reference import Distance, GraphReference
from stages.verify.onnx_layers import OnnxLayers
from stages.verify.records import Port, Records
from stages.verify.reference_name import reference_name

LiteRT = Reference | PartitionedReference | OnnxReference
AnyReference = LiteRT | GraphReference | OnnxLayers


@dataclass(frozen=True)
class _Mismatch:
    """A layer (or, without a trace, an output) that differs, in which inference."""

    inference: int
    port: Port
    found: Difference


class _Judge:
    def __init__(
        self,
        reference: AnyReference,
        records: Records,
        tolerance: float,
        litert: LiteRT | None,
        formulas: Formulas | None,
    ) -> None:
        self.reference, self.records, self.tolerance = reference, records, tolerance
        self.litert, self.formulas = litert, formulas
        self.distance = {"outputs": Distance(), "layers": Distance()}
        self.wrong_values = 0
        self.first_output: _Mismatch | None = None
        self.first_layer: _Mismatch | None = None
        self.max_relative: float | None = None
        self.layers_max_relative = 0.0
        self.layers_checked: set[int] = set()
        self.labelled = 0
        self.hits = {"ours": 0, "litert": 0, "agree": 0}
        self.overflowed: dict[int, str] = {}
        self.tied: dict[int, Tied] = {}

    def inference(self, index: int) -> None:
        records = self.records
        if records.is_first(index):
            self.reference.reset()
            if self.litert is not None:
                self.litert.reset()
            if self.formulas is not None:
                self.formulas.reset()
        if isinstance(self.reference, OnnxLayers):
            self.reference.firmware_has(self._tensors(index), self.tolerance)
        expected = self.reference.run(records.given(index))
        got = records.outputs.row(index)
        outputs = [
            (port, difference(ours, theirs.reshape(port.shape)))
            for port, ours, theirs in zip(records.outputs.ports, got, expected, strict=True)
        ]
        layers = list(self._layers(index)) if records.traces.count else []
        differ = any(found is not None and self._too_far(port, found) for port, found in (*outputs, *layers))
        if differ and (tensor := overflowing(self.reference)):
            self.overflowed[index] = tensor
            return
        if differ and (ties := self._ties(index)) is not None:
            self.tied[index] = ties
            outputs = [pair for at, pair in enumerate(outputs) if self._output_index(at) not in ties.behind]
            layers = [(port, found) for port, found in layers if port.tflite_index not in ties.behind]
        for port, found in outputs:
            self._output(index, port, found)
        for port, found in layers:
            self._layer(index, port, found)
        if self.litert is not None:
            expected = self._compare_with_litert(self.litert, index, got)
        if self.formulas is not None:
            self.formulas.inference(records.names[index])
        label = records.labels[index] if records.labels is not None else None
        if label is not None:
            our_class, their_class = (int(np.argmax(arrays[0])) for arrays in (got, expected))
            self.labelled += 1
            self.hits["ours"] += our_class == label
            self.hits["litert"] += their_class == label
            self.hits["agree"] += our_class == their_class

    def _compare_with_litert(self, litert: LiteRT, index: int, got: list[Any]) -> list[Any]:
        """LiteRT's outputs, from which those of an engine's own arithmetic may differ."""
        expected = list(litert.run(self.records.given(index)))
        for ours, theirs in zip(got, expected, strict=True):
            self.distance["outputs"].add(ours, theirs)
        if self.records.traces.count:
            for port, ours in zip(self.records.traces.ports, self.records.traces.row(index), strict=True):
                if port.tflite_index >= 0 and litert.has(port.tflite_index):
                    self.distance["layers"].add(ours, port.of_file(litert.tensor(port.tflite_index)))
        return expected

    def _layers(self, index: int) -> Iterator[tuple[Port, Difference | None]]:
        for port, ours in zip(self.records.traces.ports, self.records.traces.row(index), strict=True):
            if port.tflite_index >= 0 and self.reference.has(port.tflite_index):
                yield port, difference(ours, port.of_file(self.reference.tensor(port.tflite_index)))

    def _ties(self, index: int) -> Tied | None:
        """What a tie behind float layers accounts for, in this inference or in what is kept from one before."""
        if not isinstance(self.reference, Reference | PartitionedReference):
            return None
        if self.records.kept and not self.records.is_first(index) and index - 1 in self.tied:
            return self.tied[index - 1]
        return tied(self.reference, self._tensors(index), self.tolerance)

    def _tensors(self, index: int) -> dict[int, tuple[Port, Any]]:
        """The firmware's outputs and traces of an inference, by their number in the file."""
        outputs = zip(self.records.outputs.ports, self.records.outputs.row(index), strict=True)
        found = {self._output_index(at): pair for at, pair in enumerate(outputs)}
        if self.records.traces.count:
            rows = zip(self.records.traces.ports, self.records.traces.row(index), strict=True)
            found |= {port.tflite_index: (port, array) for port, array in rows if port.tflite_index >= 0}
        return found

    def _output_index(self, at: int) -> int:
        """The number in the file of an output."""
        return -1 if isinstance(self.reference, GraphReference) else self.reference.info.outputs[at]

    def _output(self, index: int, port: Port, found: Difference | None) -> None:
        if port.dtype == "float32":
            self.max_relative = max(self.max_relative or 0.0, found.relative if found else 0.0)
        if found is not None and self._too_far(port, found):
            self.wrong_values += found.elements
            self.first_output = self.first_output or _Mismatch(index, port, found)

    def _layer(self, index: int, port: Port, found: Difference | None) -> None:
        self.layers_checked.add(port.layer)
        if found is not None and port.dtype == "float32":
            self.layers_max_relative = max(self.layers_max_relative, found.relative)
        if found is None or not self._too_far(port, found):
            return
        # A later inference may reach an earlier layer's fault.
        if self.first_layer is None or port.layer < self.first_layer.port.layer:
            self.first_layer = _Mismatch(index, port, found)

    def _too_far(self, port: Port, found: Difference) -> bool:
        return port.dtype != "float32" or found.relative > self.tolerance

    @property
    def worst(self) -> _Mismatch | None:
        """What to report: the first layer that differs. A float layer alone fails no model whose outputs agree."""
        layer = self.first_layer
        if layer is not None and layer.port.dtype == "float32" and self.first_output is None:
            layer = None
        return layer or self.first_output


def overflowing(reference: AnyReference) -> str:
    """The first tensor, in the order of the operators, in which the reference's last run left float32; '' if none.

    It has a NaN, an infinity, or the largest float32, to which LiteRT clamps where no activation is fused. What
    becomes of these depends on the order of sums and on how a maximum compares.
    """
    if isinstance(reference, GraphReference | OnnxLayers):
        return ""
    for index, array in reference.computed().items():
        if array.dtype == np.float32 and not (np.abs(array) < np.finfo(np.float32).max).all():
            return reference.info.tensors[index].name
    return ""


def check(
    reference: AnyReference,
    records: Records,
    tolerance: float,
    begins: Callable[[int], None],
    without: Collection[int] = (),
    litert: LiteRT | None = None,
    formulas: Formulas | None = None,
) -> dict[str, Any]:
    """What verify.json holds. Raises StageError when an integer differs, or a float32 output too far.

    Float32 outputs may differ by `tolerance` times the largest magnitude in the output. An inference that differs after
    the reference itself left float32 is not judged: `overflowed` has its name and the `overflowing` tensor. `accuracy`
    holds shares of the labelled inferences: `ours` and `litert` that are classified rightly, `agree` that both put into
    the same class (the index of the first output's largest value). `begins` is told each inference; those in `without`
    are left out, and named in `without_reference`. Inferences in which a float number is rounded to the integer beside
    LiteRT's (stages.verify.float_ties) are judged as far as that explains nothing, and named in `tied`. `litert` is
    given where the reference is another: `distance` says how far outputs, and all that was traced, are from it.
    `formulas` of plug-ins are compared where the firmware is right, with the reference, or with `litert`.
    """
    count = records.inputs.count
    if not count:
        raise StageError("there is nothing to verify: the firmware was fed no inputs")
    without = _cut_short(records, without)
    work = _Judge(reference, records, tolerance, litert, formulas)
    for index in range(count):
        if index not in without:
            begins(index)
            work.inference(index)
    judged = [index for index in range(count) if index not in {*without, *work.overflowed, *work.tied}]
    checked = sum(int(np.prod(port.shape)) for port in records.outputs.ports) * len(judged)
    if work.worst is not None:
        raise _error(work, checked)
    if formulas is not None and formulas.wrong is not None:
        raise formulas.wrong
    if not judged:
        raise _nothing_left(work)
    accuracy = None
    if work.labelled:
        shares = {name: round(hits / work.labelled, 6) for name, hits in work.hits.items()}
        accuracy = {"images": work.labelled, **shares}
    return {
        "reference": reference.described,
        "inputs": len(judged),
        "without_reference": [records.names[index] for index in sorted(without)],
        "overflowed": {records.names[index]: tensor for index, tensor in sorted(work.overflowed.items())},
        "tied": {records.names[index]: ties.tensor for index, ties in sorted(work.tied.items())},
        "outputs_checked": checked,
        "mismatches": 0,
        "layers_checked": len(work.layers_checked),
        "first_mismatch": None,
        "accuracy": accuracy,
        "distance": None if litert is None else {name: one.as_dict() for name, one in work.distance.items()},
        "float": _float(work),
    }


def _cut_short(records: Records, without: Collection[int]) -> Collection[int]:
    """With the rest of each sequence from an inference on that LiteRT did not survive: it kept no state for them."""
    if not records.kept:
        return without
    found: set[int] = set()
    for index in range(records.inputs.count):
        if index in without or (index - 1 in found and not records.is_first(index)):
            found.add(index)
    return found


def _float(work: _Judge) -> dict[str, float] | None:
    """The largest relative difference of float32 outputs, and of traced float32 layers; None without such outputs."""
    if work.max_relative is None:
        return None
    return {
        "max_relative": work.max_relative,
        "layers_max_relative": work.layers_max_relative,
        "tolerance": work.tolerance,
    }


def _nothing_left(work: _Judge) -> StageError:
    if work.tied:
        index, ties = next(iter(work.tied.items()))
        return StageError(
            f"nothing is judged to its end: on {work.records.names[index]} numbers of float layers in "
            f"{escape.quoted(ties.tensor)}\n"
            "lie so near a half that QUANTIZE may round them either way, and such there are on all other inputs",
            hint="Feed it other inputs, or more (simulate.inputs).",
        )
    index, tensor = next(iter(work.overflowed.items()))
    whose = reference_name(work.reference.described)
    return StageError(
        f"{whose}'s own results leave the range of float32 on every input, first in {escape.quoted(tensor)} "
        f"on {work.records.names[index]}\n"
        "what follows a NaN or an infinity depends on the order of operations: there is nothing to compare with",
        hint="Feed it inputs of the range that it was trained on (simulate.inputs), or leave verify out.",
    )


def _error(work: _Judge, checked: int) -> StageError:
    """Three to five lines: how much of the outputs is wrong, the first layer that differs, and by how much."""
    wrong, records = work.worst, work.records
    assert wrong is not None
    found, layer = wrong.found, {}
    if wrong.port.layer >= 0:
        layer = next((entry for entry in records.layers if entry["index"] == wrong.port.layer), {})
    called = escape.quoted(wrong.port.name)
    where = f"layer {wrong.port.layer} ({layer['op']}) {called}" if layer else f"output {called}"
    total = f"{work.wrong_values} of {checked} output values differ from {work.reference.described}"
    if not work.wrong_values:
        total = f"outputs equal {work.reference.described}, but a layer does not"
    average = _number(found.mean_abs)
    far = f"{found.elements} of {found.of} elements, by {_number(found.max_abs)} at most, {average} on average"
    if wrong.port.dtype == "float32":
        far += f"; {found.relative:.2g} of the largest magnitude, {work.tolerance:g} is allowed"
    lines = [
        total,
        f"the first that differs is {where}, on {records.names[wrong.inference]}:",
        f"  {far}",
        f"  element {list(found.index)} is {_number(found.got)}, expected {_number(found.expected)}",
    ]
    kernel = layer.get("kernel")
    hint = f"Its kernel is {kernel}." if kernel else ""
    if not records.traces.count and _is_behind_floats(work.reference):
        hint = "A number that QUANTIZE may round either way shows in traces only: simulate: {trace: true} tells."
    return StageError("\n".join(lines), hint=hint)


def _is_behind_floats(reference: AnyReference) -> bool:
    if isinstance(reference, GraphReference):
        return False
    return any(rounds_floats(operator, reference.info) for operator in reference.info.operators)


def _number(value: float) -> str:
    return f"{value:.6g}"
