"""Check `compute` of plug-in layers against the reference, on the inputs of a run.

The firmware does not contain `compute`, so its outputs cannot show an error. But tables, the simplified graph, and
the tests, calibration and tuning of kernels depend on it.
"""

import numpy as np

from stages.base import StageError
from stages.ir.arrays import Array
from stages.ir.graph import Graph, Layer
from stages.ir.layers import LayerOp
from stages.ir.operators.table import plugin_operators
from stages.ir.reference.integer import advance_layer, to_logical
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.partitions import PartitionedReference
from stages.ir.reference.refusal import RunError
from stages.support.messages import escape
from stages.verify.compare import difference


class Formulas:
    """Check of plug-in layers: `compute` on reference inputs against reference outputs.

    `wrong` is the error of the first layer that differs. Built-in layers between a plug-in's layer and the next tensor
    of the file are computed too. If one of them is float32, nothing is compared.
    """

    def __init__(self, graph: Graph, reference: Reference | PartitionedReference, tolerance: float) -> None:
        self.graph, self.reference, self.tolerance = graph, reference, tolerance
        self.wrong: StageError | None = None
        self._producers = {name: layer for layer in graph.layers for name in layer.outputs}
        self._states: dict[str, Array] = {}
        comparable = [layer for layer in graph.layers if self._is_in_file(layer.outputs[0])]
        self._checked = [layer for layer in comparable if self._plug_in_layer(layer)]

    def reset(self) -> None:
        """Reset the layers' states."""
        self._states = {}

    def inference(self, name: str) -> None:
        """Compare after the reference has run the inference of that name."""
        values: dict[str, Array] = {}
        for layer in self._checked if self.wrong is None else ():
            expected = self._from_reference(layer.outputs[0])
            try:
                self.wrong = self._compared(layer, self._computed(layer, values), expected, name)
            except _Unknown:
                continue
            except Exception as error:
                cause = f"{type(error).__name__}: {escape.line(str(error))}"
                self.wrong = StageError(f"{self._title(layer)} fails: {cause}")
            if self.wrong is not None:
                return

    def _compared(self, layer: Layer, got: Array, expected: Array, name: str) -> StageError | None:
        """Return the error if `got` differs from `expected` by more than the tolerance."""
        mismatch = difference(got, expected)
        if mismatch is None or (expected.dtype == np.float32 and mismatch.relative <= self.tolerance):
            return None
        position = f" at {list(mismatch.index)}" if mismatch.index else ""
        return StageError(
            f"{self._title(layer)} differs from {self._reference_title(layer)}\n"
            f"{mismatch.elements} of {mismatch.of} values differ on {escape.name(name)}, the first{position}: "
            f"{mismatch.got:g}, expected {mismatch.expected:g}",
            hint="The firmware is correct. Fix `compute`: tests, calibration and tuning of kernels use it.",
        )

    def _title(self, layer: Layer) -> str:
        declared = self._plug_in_layer(layer)
        assert declared is not None
        return f"`compute` of layer {declared.index} ({escape.name(declared.kind)}) {escape.quoted(declared.name)}"

    def _reference_title(self, layer: Layer) -> str:
        declared = self._plug_in_layer(layer)
        name = declared.tflite_op[1] if declared is not None and declared.tflite_op is not None else ""
        if name in plugin_operators().by and plugin_operators().operators[name].litert.reference is not None:
            return f"`reference` in {plugin_operators().by[name].shown}"
        return "LiteRT"

    def _plug_in_layer(self, layer: Layer) -> Layer | None:
        """Return the plug-in's layer with a formula: this, or one between it and file tensors."""
        if layer.op.op in plugin_operators().layers and _has_formula(layer.op):
            return layer
        internal = [name for name in layer.inputs if name in self._producers and not self._is_in_file(name)]
        return next(filter(None, (self._plug_in_layer(self._producers[name]) for name in internal)), None)

    def _is_in_file(self, name: str) -> bool:
        """Return whether the file has this tensor, with all channels and the same integers."""
        tensor = self.graph.tensors[name]
        index = tensor.tflite_index
        if index is None or index < 0 or tensor.channels is not None or tensor.added or tensor.constant:
            return False
        original = self.reference.info.tensors[index]
        return original.dtype == tensor.dtype and int(np.prod(original.shape)) == tensor.elements

    def _from_reference(self, name: str) -> Array:
        """Return a tensor of the reference's last run.

        Raises _Unknown if the reference does not keep it.
        """
        tensor = self.graph.tensors[name]
        if tensor.tflite_index is None or not self.reference.has(tensor.tflite_index):
            raise _Unknown
        try:
            return self.reference.tensor(tensor.tflite_index).reshape(tensor.shape)
        except RunError:
            raise _Unknown from None

    def _value(self, name: str, values: dict[str, Array]) -> Array:
        if name not in values:
            if self._is_in_file(name):
                values[name] = self._from_reference(name)
            elif self.graph.tensors[name].constant:
                values[name] = to_logical(self.graph.constants[name], self.graph.tensors[name])
            elif name in self._producers:
                values[name] = self._computed(self._producers[name], values)
            else:
                raise _Unknown
        return values[name]

    def _computed(self, layer: Layer, values: dict[str, Array]) -> Array:
        if not _has_formula(layer.op):
            raise _Unknown
        inputs = [self._value(name, values) for name in layer.inputs]
        states = [self._states.get(name, self.graph.initial_state(name)) for name in layer.state]
        output, new_states = advance_layer(self.graph.view(layer), inputs, states)
        self._states |= dict(zip(layer.state, new_states, strict=True))
        return output


class _Unknown(Exception):
    """Raised for a tensor that the reference lacks and that is not computed in integers."""


def _has_formula(op: LayerOp) -> bool:
    cls = type(op)
    return cls.compute is not LayerOp.compute or cls.advance is not LayerOp.advance
