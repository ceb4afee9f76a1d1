"""Compare outputs and traces of each recorded input with the reference.

Reports the first layer that differs.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.ir.reference.partitions import PartitionedReference
from stages.support.messages import escape
from stages.verify.compare import Difference, difference
from stages.verify.float_ties import FloatTies, float_ties, rounds_floats
from stages.verify.formulas import Formulas
from stages.verify.graph_reference import Distance, GraphReference
from stages.verify.onnx_layers import OnnxLayers
from stages.verify.records import Port, Records
from stages.verify.reference_name import reference_name
from stages.verify.whole_window import WholeWindow

LiteRT = Reference | PartitionedReference | OnnxReference
AnyReference = LiteRT | GraphReference | OnnxLayers


@dataclass(frozen=True)
class _Mismatch:
    """A layer, or without traces an output, that differs in an inference."""

    inference: int
    port: Port
    difference: Difference


class _Checker:
    """State of the comparison over all inferences."""

    def __init__(
        self,
        reference: AnyReference,
        records: Records,
        tolerance: float,
        litert: LiteRT | None,
        formulas: Formulas | None,
        window: WholeWindow | None = None,
        networks: Sequence[OnnxLayers] = (),
    ) -> None:
        self.reference, self.records, self.tolerance = reference, records, tolerance
        self.litert, self.formulas, self.window, self.networks = litert, formulas, window, networks
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
        self.tied: dict[int, FloatTies] = {}

    def inference(self, index: int) -> None:
        """Run the reference on one inference and compare its outputs and layers."""
        records = self.records
        if records.is_first(index):
            self.reference.reset()
            if self.litert is not None:
                self.litert.reset()
            if self.formulas is not None:
                self.formulas.reset()
            if self.window is not None:
                self.window.reset()
        for network in self.networks:
            network.firmware_has(self._tensors(index), self.tolerance)
        expected = self.reference.run(records.inputs_of(index))
        actual = records.outputs.row(index)
        if self.window is not None:
            of_ports = list(zip(records.outputs.ports, actual, strict=True))
            self.window.inference(records.names[index], records.inputs_of(index), of_ports)
        outputs = [
            (port, difference(ours, theirs.reshape(port.shape)))
            for port, ours, theirs in zip(records.outputs.ports, actual, expected, strict=True)
        ]
        layers = list(self._layers(index)) if records.traces.count else []
        differ = any(mismatch is not None and self._too_far(port, mismatch) for port, mismatch in (*outputs, *layers))
        if differ and (tensor := overflowing(self.reference)):
            self.overflowed[index] = tensor
            return
        if differ and (ties := self._ties(index)) is not None:
            self.tied[index] = ties
            outputs = [
                pair for position, pair in enumerate(outputs) if self._output_index(position) not in ties.affected
            ]
            layers = [(port, mismatch) for port, mismatch in layers if port.tflite_index not in ties.affected]
        for port, mismatch in outputs:
            self._output(index, port, mismatch)
        for port, mismatch in layers:
            self._layer(index, port, mismatch)
        if self.litert is not None:
            expected = self._compare_with_litert(self.litert, index, actual)
        if self.formulas is not None:
            self.formulas.inference(records.names[index])
        label = records.labels[index] if records.labels is not None else None
        if label is not None:
            our_class, their_class = (int(np.argmax(arrays[0])) for arrays in (actual, expected))
            self.labelled += 1
            self.hits["ours"] += our_class == label
            self.hits["litert"] += their_class == label
            self.hits["agree"] += our_class == their_class

    def _compare_with_litert(self, litert: LiteRT, index: int, actual: list[Any]) -> list[Any]:
        """Add the distance from LiteRT, where an accelerator's arithmetic may differ.

        Return LiteRT's outputs.
        """
        expected = list(litert.run(self.records.inputs_of(index)))
        for ours, theirs in zip(actual, expected, strict=True):
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

    def _ties(self, index: int) -> FloatTies | None:
        """Return the near ties after float layers, in this inference or an earlier state."""
        if not isinstance(self.reference, Reference | PartitionedReference):
            return None
        if self.records.stateful and not self.records.is_first(index) and index - 1 in self.tied:
            return self.tied[index - 1]
        return float_ties(self.reference, self._tensors(index), self.tolerance)

    def _tensors(self, index: int) -> dict[int, tuple[Port, Any]]:
        """Return the firmware's outputs and traces of an inference, by index in the file."""
        outputs = zip(self.records.outputs.ports, self.records.outputs.row(index), strict=True)
        tensors = {self._output_index(position): pair for position, pair in enumerate(outputs)}
        if self.records.traces.count:
            rows = zip(self.records.traces.ports, self.records.traces.row(index), strict=True)
            tensors |= {port.tflite_index: (port, array) for port, array in rows if port.tflite_index >= 0}
        return tensors

    def _output_index(self, position: int) -> int:
        """Return the index in the file of an output."""
        return -1 if isinstance(self.reference, GraphReference) else self.reference.info.outputs[position]

    def _output(self, index: int, port: Port, mismatch: Difference | None) -> None:
        if port.dtype == "float32":
            self.max_relative = max(self.max_relative or 0.0, mismatch.relative if mismatch else 0.0)
        if mismatch is not None and self._too_far(port, mismatch):
            self.wrong_values += mismatch.elements
            self.first_output = self.first_output or _Mismatch(index, port, mismatch)

    def _layer(self, index: int, port: Port, mismatch: Difference | None) -> None:
        self.layers_checked.add(port.layer)
        if mismatch is not None and port.dtype == "float32":
            self.layers_max_relative = max(self.layers_max_relative, mismatch.relative)
        if mismatch is None or not self._too_far(port, mismatch):
            return
        # A later inference may show an error in an earlier layer.
        if self.first_layer is None or port.layer < self.first_layer.port.layer:
            self.first_layer = _Mismatch(index, port, mismatch)

    def _too_far(self, port: Port, mismatch: Difference) -> bool:
        return port.dtype != "float32" or mismatch.relative > self.tolerance

    @property
    def worst(self) -> _Mismatch | None:
        """The mismatch to report: the first layer that differs.

        Float layers count only if an output differs too.
        """
        layer = self.first_layer
        if layer is not None and layer.port.dtype == "float32" and self.first_output is None:
            layer = None
        return layer or self.first_output


def overflowing(reference: AnyReference) -> str:
    """Return the first tensor that overflowed float32 in the reference's last run, or ''.

    A tensor overflowed if it has a NaN, an infinity or the largest float32. LiteRT clamps to that value even without
    a fused activation. Later results depend on the order of operations.
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
    window: WholeWindow | None = None,
    networks: Sequence[OnnxLayers] = (),
) -> dict[str, Any]:
    """Compare all inferences and return the content of verify.json.

    tolerance  float32 outputs may differ by this factor of the largest magnitude in the output
    begins     called with the index of each inference
    without    inferences to skip; named in `without_reference`
    litert     LiteRT or ONNX Runtime if `reference` is the integer graph; `distance` is measured from it
    formulas   check of plug-in layers
    window     check of an incremental network against the whole window
    networks   the networks from ONNX in `reference` that are checked layer by layer

    An inference that differs after the reference overflowed float32 is not verified; `overflowed` has its name and
    the tensor. Inferences with near ties after float layers (stages.verify.float_ties) are verified except for the
    layers that depend on them, and named in `tied`. `accuracy` has the shares of labelled inferences that are
    classified correctly (`ours`, `litert`) and equally (`agree`).

    Raises StageError if an integer differs, or a float32 output by more than the tolerance.
    """
    count = records.inputs.count
    if not count:
        raise StageError("nothing to verify: the firmware got no inputs")
    without = with_rest_of_sequences(records, without)
    work = _Checker(reference, records, tolerance, litert, formulas, window, networks)
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
    if window is not None and window.wrong is not None:
        raise window.wrong
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
        "distance": None if litert is None else {name: sums.as_dict() for name, sums in work.distance.items()},
        "float": _float(work),
        **({} if window is None else {"whole_window": window.described}),
    }


def with_rest_of_sequences(records: Records, without: Collection[int]) -> set[int]:
    """Add inferences after a skipped one in its sequence: they have no reference state."""
    if not records.stateful:
        return {*without}
    skipped: set[int] = set()
    for index in range(records.inputs.count):
        if index in without or (index - 1 in skipped and not records.is_first(index)):
            skipped.add(index)
    return skipped


def _float(work: _Checker) -> dict[str, float] | None:
    """Return the largest relative differences of float32 outputs and layers, or None."""
    if work.max_relative is None:
        return None
    return {
        "max_relative": work.max_relative,
        "layers_max_relative": work.layers_max_relative,
        "tolerance": work.tolerance,
    }


def _nothing_left(work: _Checker) -> StageError:
    if work.tied:
        index, ties = next(iter(work.tied.items()))
        return StageError(
            f"no inference could be verified completely: on {work.records.names[index]}, floats in "
            f"{escape.quoted(ties.tensor)}\n"
            "are near ties, which QUANTIZE may round either way; all other inputs have near ties too",
            hint="Use other or more inputs (simulate.inputs).",
        )
    index, tensor = next(iter(work.overflowed.items()))
    name = reference_name(work.reference.described)
    return StageError(
        f"{name} overflows float32 on every input, first in {escape.quoted(tensor)} on {work.records.names[index]}\n"
        "results after a NaN or an infinity depend on the order of operations, so they cannot be compared",
        hint="Use inputs in the range of the training data (simulate.inputs), or remove the stage verify.",
    )


def _error(work: _Checker, checked: int) -> StageError:
    """Return the error: how many outputs differ, the first layer that differs, and by how much."""
    wrong, records = work.worst, work.records
    assert wrong is not None
    mismatch, layer = wrong.difference, {}
    if wrong.port.layer >= 0:
        layer = next((entry for entry in records.layers if entry["index"] == wrong.port.layer), {})
    name = escape.quoted(wrong.port.name)
    place = f"layer {wrong.port.layer} ({layer['op']}) {name}" if layer else f"output {name}"
    total = f"{work.wrong_values} of {checked} output values differ from {work.reference.described}"
    if not work.wrong_values:
        total = f"outputs equal {work.reference.described}, but a layer differs"
    average = _number(mismatch.mean_abs)
    extent = (
        f"{mismatch.elements} of {mismatch.of} elements, by at most {_number(mismatch.max_abs)}, {average} on average"
    )
    if wrong.port.dtype == "float32":
        extent += f"; {mismatch.relative:.2g} of the largest magnitude, allowed {work.tolerance:g}"
    lines = [
        total,
        f"the first that differs is {place}, on {records.names[wrong.inference]}:",
        f"  {extent}",
        f"  element {list(mismatch.index)} is {_number(mismatch.got)}, expected {_number(mismatch.expected)}",
    ]
    kernel = layer.get("kernel")
    hint = f"Its kernel is {kernel}." if kernel else ""
    if not records.traces.count and _quantizes_floats(work.reference):
        hint = "This may be a near tie in QUANTIZE. Set simulate: {trace: true} to check that."
    return StageError("\n".join(lines), hint=hint)


def _quantizes_floats(reference: AnyReference) -> bool:
    if isinstance(reference, GraphReference):
        return False
    return any(rounds_floats(operator, reference.info) for operator in reference.info.operators)


def _number(value: float) -> str:
    return f"{value:.6g}"
