"""Whether layers that plug-ins declare say of themselves what they give: their `compute`, on a run's own inputs.

No firmware has it inside, so no byte of an output tells that it is wrong. But tables and the simplified graph are made
by it, and kernels are tested, calibrated and tuned by it.
"""

from __future__ import annotations

import numpy as np

from stages.base import StageError
from stages.ir.graph import Graph, Layer
from stages.ir.operators.layer import LayerOp
from stages.ir.operators.table import outside
from stages.ir.reference.integer import advance_layer, to_logical
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.partitions import PartitionedReference
from stages.ir.reference.refusal import RunError
from stages.support.messages import escape
from stages.verify.compare import difference
from stages.verify.records import Array


class Formulas:
    """Check of plug-in layers: `compute` on the reference's inputs against the reference's outputs.

    `wrong` is the error of the first layer that differs. Layers of Firmline that stand between one of a plug-in and the
    next tensor of the file are computed with it; where a layer of float32 does, nothing is compared.
    """

    def __init__(self, graph: Graph, reference: Reference | PartitionedReference, tolerance: float) -> None:
        self.graph, self.reference, self.tolerance = graph, reference, tolerance
        self.wrong: StageError | None = None
        self._made = {name: layer for layer in graph.layers for name in layer.outputs}
        self._states: dict[str, Array] = {}
        self._checked = [layer for layer in graph.layers if self._is_seen(layer.outputs[0]) and self._theirs(layer)]

    def reset(self) -> None:
        """Forgets what layers keep."""
        self._states = {}

    def inference(self, name: str) -> None:
        """Compares after a run of the reference, on the inference of that name."""
        found: dict[str, Array] = {}
        for layer in self._checked if self.wrong is None else ():
            wanted = self._seen(layer.outputs[0])
            try:
                self.wrong = self._compared(layer, self._computed(layer, found), wanted, name)
            except _Unknown:
                continue
            except Exception as error:
                self.wrong = StageError(f"{self._said(layer)} fails: {type(error).__name__}: {escape.line(str(error))}")
            if self.wrong is not None:
                return

    def _compared(self, layer: Layer, got: Array, wanted: Array, name: str) -> StageError | None:
        found = difference(got, wanted)
        if found is None or (wanted.dtype == np.float32 and found.relative <= self.tolerance):
            return None
        at = f" at {list(found.index)}" if found.index else ""
        return StageError(
            f"{self._said(layer)} gives other numbers than {self._judge(layer)}\n"
            f"{found.elements} of {found.of} differ on {escape.name(name)}, the first{at}: {found.got:g} instead of "
            f"{found.expected:g}",
            hint="The firmware is right, but kernels are tested, calibrated and tuned by `compute`.",
        )

    def _said(self, layer: Layer) -> str:
        theirs = self._theirs(layer)
        assert theirs is not None
        return f"`compute` of layer {theirs.index} ({escape.name(theirs.kind)}) {escape.quoted(theirs.name)}"

    def _judge(self, layer: Layer) -> str:
        theirs = self._theirs(layer)
        name = theirs.tflite_op[1] if theirs is not None and theirs.tflite_op is not None else ""
        if name in outside().by and outside().operators[name].reference is not None:
            return f"`reference` in {outside().by[name].shown}"
        return "LiteRT"

    def _theirs(self, layer: Layer) -> Layer | None:
        """The layer of a plug-in, with a formula, that this one is, or that lies between it and tensors of the file."""
        if layer.op.op in outside().layers and _has_formula(layer.op):
            return layer
        unseen = (self._made[name] for name in layer.inputs if name in self._made and not self._is_seen(name))
        return next(filter(None, map(self._theirs, unseen)), None)

    def _is_seen(self, name: str) -> bool:
        """Whether the file has the tensor, whole and in its integers."""
        tensor = self.graph.tensors[name]
        index = tensor.tflite_index
        if index is None or index < 0 or tensor.channels is not None or tensor.added or tensor.constant:
            return False
        theirs = self.reference.info.tensors[index]
        return theirs.dtype == tensor.dtype and int(np.prod(theirs.shape)) == tensor.elements

    def _seen(self, name: str) -> Array:
        """As the reference's last run left it. Raises _Unknown for what it does not keep."""
        tensor = self.graph.tensors[name]
        if tensor.tflite_index is None or not self.reference.has(tensor.tflite_index):
            raise _Unknown
        try:
            return self.reference.tensor(tensor.tflite_index).reshape(tensor.shape)
        except RunError:
            raise _Unknown from None

    def _value(self, name: str, found: dict[str, Array]) -> Array:
        if name not in found:
            if self._is_seen(name):
                found[name] = self._seen(name)
            elif self.graph.tensors[name].constant:
                found[name] = to_logical(self.graph.constants[name], self.graph.tensors[name])
            elif name in self._made:
                found[name] = self._computed(self._made[name], found)
            else:
                raise _Unknown
        return found[name]

    def _computed(self, layer: Layer, found: dict[str, Array]) -> Array:
        if not _has_formula(layer.op):
            raise _Unknown
        given = [self._value(name, found) for name in layer.inputs]
        states = [self._states.get(name, self.graph.beginning(name)) for name in layer.state]
        made, kept = advance_layer(self.graph.view(layer), given, states)
        self._states |= dict(zip(layer.state, kept, strict=True))
        return made


class _Unknown(Exception):
    """A tensor that nobody has, or computes in integers."""


def _has_formula(op: LayerOp) -> bool:
    cls = type(op)
    return cls.compute is not LayerOp.compute or cls.advance is not LayerOp.advance
