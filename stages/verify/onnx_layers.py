"""Each layer of a network that came as ONNX, held to ONNX Runtime on the layer's own inputs.

Sums of real numbers are not the same everywhere (stages.verify.near_ties), and one number that differs changes all that
follows. So the integer graph is run, and ONNX Runtime computes each of its layers alone, on what the integer graph has
before it: numbers differ in near ties and nowhere else, or the network fails.

A QuantizeLinear behind float layers reads real numbers that the firmware has within `tolerance`. Where its integers
differ in near ties alone, the graph goes on with the firmware's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.graph import Graph, Layer, Quantize
from stages.ir.graph.packed import as_in_file
from stages.ir.models.tflite_reader import ModelInfo
from stages.ir.reference.integer import run_layer, to_logical
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.ir.reference.onnx_session import part_of, session
from stages.ir.reference.partitions import run_plug_in
from stages.support.messages import escape
from stages.verify.float_ties import near_halves
from stages.verify.near_ties import near_ties, other_pairs
from stages.verify.records import Array, Port

_COPIES = ("reshape", "squeeze", "transpose", "slice", "strided_slice")


@dataclass
class Ties:
    """Of one layer: values that were computed, those that are near ties, and those that differ there."""

    values: int = 0
    near: int = 0
    differing: int = 0


class OnnxLayers:
    """The integer graph as a reference; `run` checks every layer. `ties` has those that have sums, by name."""

    def __init__(self, folder: Path, description: Path, theirs: OnnxReference) -> None:
        """folder: of the quantize artifact, description: import's tensors.json."""
        self.graph, self.theirs = Graph.load(folder), theirs
        self.rules: dict[int, Mapping[str, Any]] = {
            entry["index"]: entry.get("rule") or {} for entry in json.loads(description.read_text())["operators"]
        }
        self.ties: dict[str, Ties] = {}
        self._made = {name: layer for layer in self.graph.layers for name in layer.outputs}
        self._by_index = {t.tflite_index: t for t in self.graph.tensors.values() if t.tflite_index is not None}
        self.firmware: Mapping[int, tuple[Port, Array]] = {}
        self.tolerance = 0.0
        self._near: dict[str, tuple[Array, bool]] = {}
        self._customs = {index: operator for operator in theirs.customs for index in operator.outputs}
        self._values: dict[str, Array] = {}
        self._sessions: dict[str, Any] = {}

    @property
    def described(self) -> str:
        """What reports call the reference."""
        return f"{self.theirs.described}, layer by layer"

    @property
    def is_needed(self) -> bool:
        """Whether a layer has sums that may round otherwise."""
        return any("sums" in rule or "lowered" in rule for rule in self.rules.values())

    @property
    def info(self) -> ModelInfo:
        """The imported file."""
        return self.theirs.info

    def reset(self) -> None:
        """Nothing is kept from one run to the next."""

    def firmware_has(self, tensors: Mapping[int, tuple[Port, Array]], tolerance: float) -> None:
        """Sets what the firmware computed in the next run, by index in the file, and how far its floats may be off."""
        self.firmware, self.tolerance = tensors, tolerance

    def has(self, index: int) -> bool:
        """Whether the tensor of that index in the imported file has a value."""
        return index in self._by_index and self._by_index[index].name in self._values

    def tensor(self, index: int) -> Array:
        """A tensor of the last run by its index in the imported file."""
        tensor = self._by_index[index]
        return as_in_file(self._values[tensor.name], tensor.added)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs in the model's order. Raises StageError for a layer that differs where it may not."""
        self.theirs.run(inputs)
        self._near = {}
        self._values = dict(zip(self.graph.inputs, map(np.asarray, inputs), strict=True))
        for tensor in self.graph.tensors.values():
            if tensor.constant:
                self._values[tensor.name] = to_logical(self.graph.constants[tensor.name], tensor)
        for layer in self.graph.layers:
            self._compute(layer)
        return [as_in_file(self._values[name], self.graph.tensors[name].added) for name in self.graph.outputs]

    def _compute(self, layer: Layer) -> None:
        view, (out,) = self.graph.view(layer), layer.outputs
        index = self.graph.tensors[out].tflite_index
        known = index is not None and self.theirs.has(index)
        given = [self._values[name] for name in layer.inputs if name in self._values]
        is_real = self.graph.tensors[out].dtype == "float32"
        behind_reals = (is_real or layer.op.op == "quantize") and len(given) < len(layer.inputs)
        if layer.op.op == "float" or behind_reals or (is_real and index in self._customs):
            if known:
                self._values[out] = self._theirs(layer)
            return
        if len(given) < len(layer.inputs):
            raise StageError(f"layer {escape.quoted(layer.name)} follows real numbers that ONNX does not have")
        self._values[out] = run_layer(view, given)
        near = self._near_ties(layer, view, given)
        if known:
            self._hold(layer, view, given, near)
        elif near is not None:
            self._near[out] = near
        if isinstance(layer.op, Quantize):
            self._adopt(layer, layer.op.scale, given[0])

    def _near_ties(self, layer: Layer, view: Any, given: list[Any]) -> tuple[Array, bool] | None:
        """Which elements of a layer's output are near ties, and whether their sums are of real numbers.

        None for a layer without such sums. What is copied from tensors that ONNX does not have is where it was.
        """
        rule = self._rule(layer)
        near = near_ties(view, given, rule)
        if near is not None:
            return near, rule["sums"] != "integer"
        before = [self._near.get(name) for name in layer.inputs]
        copies = layer.op.op == "concatenation" or getattr(layer.op, "kind", "") in _COPIES
        if not copies or not any(before):
            return None
        marks = [
            np.zeros(x.shape, x.dtype) if one is None else one[0].astype(x.dtype)
            for x, one in zip(given, before, strict=True)
        ]
        return run_layer(view, marks) != 0, any(one is not None and one[1] for one in before)

    def _rule(self, layer: Layer) -> Mapping[str, Any]:
        return self.rules.get(layer.tflite_op[0] if layer.tflite_op else -1, {})

    def _hold(self, layer: Layer, view: Any, given: list[Any], near: tuple[Array, bool] | None) -> None:
        """Compares a layer's output with what ONNX Runtime makes of the same."""
        (out,) = layer.outputs
        ours, theirs = self._values[out], self._theirs(layer)
        differ = ours != theirs
        if near is not None:
            places, is_float = near
            if is_float or differ.any():
                self._count(layer, places, differ)
            apart = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
            differ &= ~places | (apart > 1)
        elif layer.op.op in ("add", "sub", "mul") and differ.any():
            places = other_pairs(view, given, ours, self._rule(layer))
            self._count(layer, places, differ)
            differ &= ~places
        if differ.any():
            first = tuple(int(axis) for axis in np.argwhere(differ)[0])
            raise StageError(
                f"layer {layer.index} ({layer.kind}) {escape.quoted(layer.name)} is not what "
                f"{self.theirs.described} makes of its inputs:\n"
                f"{int(differ.sum())} of {ours.size} elements differ where none may; "
                f"element {list(first)} is {ours[first].item():.6g}, expected {theirs[first].item():.6g}"
            )

    def _adopt(self, layer: Layer, scale: float, reals: Array) -> None:
        """Goes on with the firmware's integers behind float layers, where all that differ are near ties."""
        (out,), tensor = layer.outputs, self.graph.tensors[layer.outputs[0]]
        index = tensor.tflite_index
        port, theirs = self.firmware.get(-1 if index is None else index, (None, None))
        if port is None or theirs is None or port.channels is not None or layer.inputs[0] in self.graph.inputs:
            return
        made = theirs.reshape(tensor.shape)
        ours, apart = self._values[out], np.abs(made.astype(np.int64) - self._values[out].astype(np.int64))
        if not apart.any():
            return
        near = near_halves(reals, scale, self.tolerance)
        if (apart <= near).all():
            self._count(layer, near, made != ours)
            self._values[out] = made.astype(ours.dtype)

    def _count(self, layer: Layer, near: Array, differ: Array) -> None:
        found = self.ties.setdefault(layer.name, Ties())
        found.values += near.size
        found.near += int(near.sum())
        found.differing += int(differ.sum())

    def _theirs(self, layer: Layer) -> Array:
        """ONNX Runtime's result of a layer, from the values of the graph before it."""
        (out,) = layer.outputs
        index = self.graph.tensors[out].tflite_index
        assert index is not None
        custom = self._customs.get(index)
        if custom is not None:
            return run_plug_in(custom, self.theirs.info, self._read)[custom.outputs.index(index)]
        goal = self.theirs.names[index].name
        before = self._before(layer)
        feeds = {}
        for name in before:
            tensor = self.graph.tensors[name]
            assert tensor.tflite_index is not None
            traced, original = self.theirs.names[tensor.tflite_index], self.theirs.original(tensor.tflite_index)
            feeds[traced.name] = traced.original(self._values[name], str(original.dtype)).reshape(original.shape)
        if goal in feeds:  # the same value in another order
            found = feeds[goal]
        else:
            if goal not in self._sessions:
                self._sessions[goal] = self._session(goal, before)
            (found,) = self._sessions[goal].run([goal], feeds)
        tensor = self.graph.tensors[out]
        return self.theirs.names[index].laid(found, tensor.dtype).reshape(tensor.shape)

    def _read(self, index: int) -> Array:
        """What a plug-in's operator reads: a tensor of the last run, or a constant of the file."""
        tensor = self.theirs.info.tensors[index]
        return tensor.values() if tensor.data is not None else self.tensor(index)

    def _before(self, layer: Layer) -> list[str]:
        """The nearest tensors before the layer that ONNX has."""
        found: list[str] = []
        for name in layer.inputs:
            tensor = self.graph.tensors[name]
            if tensor.constant:
                continue
            if tensor.tflite_index is not None and self.theirs.has(tensor.tflite_index) and name in self._values:
                found.append(name)
            else:
                found += self._before(self._made[name])
        return list(dict.fromkeys(found))

    def _session(self, goal: str, before: Sequence[str]) -> Any:
        """The part of the ONNX graph that computes `goal` from the values of these tensors."""
        ends = {}
        for name in before:
            index = self.graph.tensors[name].tflite_index
            assert index is not None
            ends[self.theirs.names[index].name] = self.theirs.original(index)
        return session(part_of(self.theirs.graph, [goal], ends), goal)

    def as_dict(self) -> dict[str, Any] | None:
        """What verify.json holds of near ties; None where there cannot be any."""
        if not self.ties:
            return None
        ties = self.ties.values()
        return {
            "values": sum(one.values for one in ties),
            "near": sum(one.near for one in ties),
            "differing": sum(one.differing for one in ties),
            "layers": {name: vars(one) for name, one in self.ties.items()},
        }
