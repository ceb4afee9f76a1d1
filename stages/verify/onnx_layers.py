"""Check each layer of a network from ONNX against ONNX Runtime, on its own inputs.

Float sums depend on the implementation (stages.verify.near_ties), and one different number changes all later ones.
So the integer graph runs, and ONNX Runtime computes each layer from the integer graph's inputs. Results may differ in
near ties only.

A QuantizeLinear after float layers reads floats that the firmware has within `tolerance`. If its integers differ in
near ties only, the graph continues with the firmware's integers.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.arrays import Array
from stages.ir.graph import Graph, Layer, Quantize, Tensor
from stages.ir.model_info import ModelInfo
from stages.ir.operators.arithmetic import Add, Mul
from stages.ir.operators.concat_and_split import Concatenation
from stages.ir.operators.floats import Float
from stages.ir.packed import as_in_file
from stages.ir.reference.integer import run_layer, to_logical
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.ir.reference.onnx_session import part_of, session
from stages.ir.reference.partitions import run_plug_in
from stages.support.messages import escape
from stages.verify.float_ties import near_halves
from stages.verify.near_ties import near_ties, other_pairs
from stages.verify.records import Port

_COPIES = ("reshape", "squeeze", "transpose", "slice", "strided_slice", "depth_to_space", "space_to_depth")


@dataclass
class Ties:
    """Numbers of values of one layer: computed, near ties, and differing near ties."""

    values: int = 0
    near: int = 0
    differing: int = 0


def _part(graph: Graph, operators: Collection[int], inputs: Collection[int]) -> list[Layer]:
    """Return the layers of a part of the graph, with those that only change the layout."""
    known = {tensor.name for tensor in graph.tensors.values() if tensor.constant or tensor.tflite_index in inputs}
    layers = []
    for layer in graph.layers:
        changes_layout = layer.tflite_op is None and known.issuperset(layer.inputs)
        if changes_layout or (layer.tflite_op is not None and layer.tflite_op[0] in operators):
            layers.append(layer)
            known.update(layer.outputs)
    return layers


class OnnxLayers:
    """Reference that runs the integer graph and checks every layer.

    `ties` has the layers with float sums, by name.
    """

    def __init__(
        self, folder: Path, description: Path, theirs: OnnxReference, operators: Collection[int] | None = None
    ) -> None:
        """Load the graph.

        folder       quantize's artifact
        description  import's tensors.json
        operators    of the network, if it is a part of a chain
        """
        self.graph, self.theirs = Graph.load(folder), theirs
        if operators is not None:
            self.graph.layers = _part(self.graph, operators, theirs.info.inputs)
        self.rules: dict[int, Mapping[str, Any]] = {
            entry["index"]: entry.get("rule") or {} for entry in json.loads(description.read_text())["operators"]
        }
        self.ties: dict[str, Ties] = {}
        self._by_index = {t.tflite_index: t for t in self.graph.tensors.values() if t.tflite_index is not None}
        self._tensors: dict[str, list[Tensor]] = defaultdict(list)
        for index, tensor in self._by_index.items():
            if theirs.has(index):
                self._tensors[theirs.names[index].name].append(tensor)
        self.firmware: Mapping[int, tuple[Port, Array]] = {}
        self.tolerance = 0.0
        self._near: dict[str, tuple[Array, bool]] = {}
        self._customs = {index: operator for operator in theirs.customs for index in operator.outputs}
        self._values: dict[str, Array] = {}
        self._sessions: dict[str, Any] = {}
        self._kept: dict[int, Array] = {}

    @property
    def described(self) -> str:
        """Name of the reference in reports."""
        return f"{self.theirs.described}, layer by layer"

    @property
    def is_needed(self) -> bool:
        """Whether a layer has sums that may round differently in ONNX Runtime."""
        rules = [self._rule(layer) for layer in self.graph.layers]
        return any("sums" in rule or "lowered" in rule for rule in rules)

    @property
    def info(self) -> ModelInfo:
        """The imported file."""
        return self.theirs.info

    def reset(self) -> None:
        """Reset the states."""
        self._kept = {}
        self.theirs.reset()

    def firmware_has(self, tensors: Mapping[int, tuple[Port, Array]], tolerance: float) -> None:
        """Set the firmware's tensors of the next run, by index, and its floats' tolerance."""
        self.firmware, self.tolerance = tensors, tolerance

    def has(self, index: int) -> bool:
        """Return whether the tensor with this index in the imported file has a value."""
        return index in self._by_index and self._by_index[index].name in self._values

    def tensor(self, index: int) -> Array:
        """Return a tensor of the last run by its index in the imported file."""
        tensor = self._by_index[index]
        return as_in_file(self._values[tensor.name], tensor.added)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the graph, check each layer, and return the outputs.

        Raises StageError for a layer that differs.
        """
        self.theirs.run(inputs)
        self._near = {}
        arrays = dict(zip(self.info.inputs, map(np.asarray, inputs), strict=True))
        for state in self.theirs.states:
            begin = state.traced.laid(state.begin, self.info.tensors[state.read].dtype)
            arrays[state.read] = self._kept.get(state.read, begin)
        self._values = {}
        for tensor in self.graph.tensors.values():
            if tensor.tflite_index in arrays:
                self._values[tensor.name] = arrays[tensor.tflite_index].reshape(tensor.shape)
            if tensor.constant:
                self._values[tensor.name] = to_logical(self.graph.constants[tensor.name], tensor)
        for layer in self.graph.layers:
            if layer.outputs[0] not in self._values:
                self._compute(layer)
        self._kept = {state.read: self.tensor(state.written) for state in self.theirs.states}
        return [self.tensor(index) for index in self.info.outputs]

    def _compute(self, layer: Layer) -> None:
        view, (out,) = self.graph.view(layer), layer.outputs
        index = self.graph.tensors[out].tflite_index
        in_onnx = index is not None and self.theirs.has(index)
        inputs = [self._values[name] for name in layer.inputs if name in self._values]
        is_float = self.graph.tensors[out].dtype == "float32"
        after_floats = (is_float or isinstance(layer.op, Quantize)) and len(inputs) < len(layer.inputs)
        if isinstance(layer.op, Float) or layer.state or after_floats or (is_float and index in self._customs):
            if in_onnx:
                self._values[out] = self._theirs(layer)
            return
        if len(inputs) < len(layer.inputs):
            raise StageError(f"layer {escape.quoted(layer.name)} reads floats that the ONNX file does not have")
        self._values[out] = run_layer(view, inputs)
        near_tie = self._near_ties(layer, view, inputs)
        if in_onnx:
            self._check(layer, view, inputs, near_tie)
        elif near_tie is not None:
            self._near[out] = near_tie
        if isinstance(layer.op, Quantize):
            self._adopt(layer, layer.op.scale, inputs[0])

    def _near_ties(self, layer: Layer, view: Any, inputs: list[Any]) -> tuple[Array, bool] | None:
        """Return the near ties of a layer's output, and whether their sums are floats.

        None for a layer without such sums. Layers that copy tensors copy the marks of near ties too.
        """
        rule = self._rule(layer)
        near_tie = near_ties(view, inputs, rule)
        if near_tie is not None:
            return near_tie, rule["sums"] != "integer"
        before = [self._near.get(name) for name in layer.inputs]
        copies = isinstance(layer.op, Concatenation) or getattr(layer.op, "kind", "") in _COPIES
        if not copies or not any(before):
            return None
        marks = [
            np.zeros(x.shape, x.dtype) if ties is None else ties[0].astype(x.dtype)
            for x, ties in zip(inputs, before, strict=True)
        ]
        return run_layer(view, marks) != 0, any(ties is not None and ties[1] for ties in before)

    def _rule(self, layer: Layer) -> Mapping[str, Any]:
        return self.rules.get(layer.tflite_op[0] if layer.tflite_op else -1, {})

    def _check(self, layer: Layer, view: Any, inputs: list[Any], near_tie: tuple[Array, bool] | None) -> None:
        """Compare a layer's output with ONNX Runtime's for the same inputs. Raises StageError."""
        (out,) = layer.outputs
        ours, theirs = self._values[out], self._theirs(layer)
        differ = ours != theirs
        if near_tie is not None:
            places, is_float = near_tie
            if is_float or differ.any():
                self._count(layer, places, differ)
            distance = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
            differ &= ~places | (distance > 1)
        elif isinstance(layer.op, Add | Mul) and differ.any():
            places = other_pairs(view, inputs, ours, self._rule(layer))
            self._count(layer, places, differ)
            differ &= ~places
        if differ.any():
            index = tuple(int(axis) for axis in np.argwhere(differ)[0])
            raise StageError(
                f"layer {layer.index} ({layer.kind}) {escape.quoted(layer.name)} differs from "
                f"{self.theirs.described} on the same inputs:\n"
                f"{int(differ.sum())} of {ours.size} elements differ without a near tie; "
                f"element {list(index)} is {ours[index].item():.6g}, expected {theirs[index].item():.6g}"
            )

    def _adopt(self, layer: Layer, scale: float, floats: Array) -> None:
        """Continue with the firmware's integers after float layers if only near ties differ."""
        (out,), tensor = layer.outputs, self.graph.tensors[layer.outputs[0]]
        index = tensor.tflite_index
        port, theirs = self.firmware.get(-1 if index is None else index, (None, None))
        source = self.graph.tensors[layer.inputs[0]].tflite_index
        if port is None or theirs is None or port.channels is not None or source in self.info.inputs:
            return
        quantized = theirs.reshape(tensor.shape)
        ours, distance = self._values[out], np.abs(quantized.astype(np.int64) - self._values[out].astype(np.int64))
        if not distance.any():
            return
        near_tie = near_halves(floats, scale, self.tolerance)
        if (distance <= near_tie).all():
            self._count(layer, near_tie, quantized != ours)
            self._values[out] = quantized.astype(ours.dtype)

    def _count(self, layer: Layer, near_tie: Array, differ: Array) -> None:
        ties = self.ties.setdefault(layer.name, Ties())
        ties.values += near_tie.size
        ties.near += int(near_tie.sum())
        ties.differing += int(differ.sum())

    def _theirs(self, layer: Layer) -> Array:
        """Return ONNX Runtime's output of a layer, computed from the graph's values before it."""
        (out,) = layer.outputs
        index = self.graph.tensors[out].tflite_index
        assert index is not None
        custom = self._customs.get(index)
        if custom is not None:
            return run_plug_in(custom, self.theirs.info, self._read)[custom.outputs.index(index)]
        goal = self.theirs.names[index].name
        if (values := self._original(goal, besides=out)) is None:
            runs = self._session(goal)
            (values,) = runs.run([goal], {port.name: self._original(port.name) for port in runs.get_inputs()})
        tensor = self.graph.tensors[out]
        return self.theirs.names[index].laid(values, tensor.dtype).reshape(tensor.shape)

    def _read(self, index: int) -> Array:
        """Return a plug-in operator's input: a tensor of the last run, or a file's constant."""
        tensor = self.theirs.info.tensors[index]
        return tensor.values() if tensor.data is not None else self.tensor(index)

    def _original(self, name: str, besides: str = "") -> Array | None:
        """Return a value of the ONNX graph from a tensor of the run, None without such a tensor.

        Ignores the tensor `besides`.
        """
        for tensor in self._tensors[name]:
            if tensor.name in self._values and tensor.name != besides:
                assert tensor.tflite_index is not None
                traced, original = self.theirs.names[tensor.tflite_index], self.theirs.original(tensor.tflite_index)
                return traced.original(self._values[tensor.name], str(original.dtype)).reshape(original.shape)
        return None

    def _session(self, goal: str) -> Any:
        """Return a session of the ONNX subgraph that computes `goal` from the run's values."""
        if goal not in self._sessions:
            arrays = {name: self._original(name) for name in self._tensors if name != goal}
            ends = {name: array for name, array in arrays.items() if array is not None}
            self._sessions[goal] = session(part_of(self.theirs.graph, [goal], ends), goal)
        return self._sessions[goal]


def counted(networks: Sequence[OnnxLayers]) -> dict[str, Any] | None:
    """Return `near_ties` of verify.json; None if no layer can have near ties."""
    layers = {name: ties for network in networks for name, ties in network.ties.items()}
    if not layers:
        return None
    return {
        "values": sum(ties.values for ties in layers.values()),
        "near": sum(ties.near for ties in layers.values()),
        "differing": sum(ties.differing for ties in layers.values()),
        "layers": {name: vars(ties) for name, ties in layers.items()},
    }
