"""ONNX Runtime on the CPU without graph optimizations: the reference of ONNX networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from stages.ir.arrays import Array
from stages.ir.model_info import ModelInfo, TensorInfo
from stages.ir.models.onnx_names import OnnxNetwork, Traced, networks_from_json
from stages.ir.models.tflite_reader import read
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.onnx_partitions import CustomGraph, CustomPartitions
from stages.ir.reference.onnx_session import session
from stages.ir.reference.partitions import Partition, PartitionedReference, computed_by, file_with, reference_of
from stages.ir.reference.refusal import RunError
from stages.support.lazy import onnx

NETWORKS = "onnx.json"
"""In import's artifact: the ONNX networks of model.tflite (stages.ir.models.onnx_names). `window_` + NETWORKS: those of
window.tflite.
"""


@dataclass(frozen=True)
class _State:
    """An input of the ONNX graph that reads an output of the previous run.

    traced   the input
    read     number of the tensor with the input's value
    written  number of the tensor with the output's value
    begin    value after a reset
    """

    traced: Traced
    read: int
    written: int
    begin: Array

    @property
    def name(self) -> str:
        """Name of the input."""
        return self.traced.name


def _states(info: ModelInfo, names: Mapping[int, Traced], types: Mapping[str, str]) -> list[_State]:
    """Return the states: variables of the file whose copy is an input of the ONNX graph."""
    writes = {operator.inputs[0]: operator for operator in info.operators if operator.op == "ASSIGN_VARIABLE"}
    states = []
    for operator in info.operators:
        traced = names.get(operator.outputs[0]) if operator.op == "READ_VARIABLE" else None
        if traced is not None and traced.name in types:
            _, written, begin = writes[operator.inputs[0]].inputs
            value = traced.original(info.tensors[begin].values(), types[traced.name])
            states.append(_State(traced, operator.outputs[0], written, value))
    return states


class OnnxReference:
    """The reference of an imported ONNX file, with the methods of `Reference`.

    Tensors are from the TFLite file that import wrote, with their shapes and axis order. `has` is true for values
    of the ONNX graph, not for tensors that import added.
    """

    def __init__(self, model: bytes, original: bytes, names: Mapping[int, Traced], *, name: str = "model") -> None:
        """Load the TFLite file `model` and the ONNX file `original`.

        Raises RunError if ONNX Runtime refuses it.
        """
        self.info: ModelInfo = read(model, name)
        self.name, self.names, self.model = name, dict(names), model
        self.inputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.inputs)
        self.outputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.outputs)
        self.graph = onnx.load_model_from_string(original)
        self.types = {info.name: _dtype(info) for info in self.graph.graph.input}
        self.known = sorted({traced.name for traced in names.values()} - self.types.keys())
        outputs = {info.name for info in self.graph.graph.output}
        for value in self.known:
            if value not in outputs:
                self.graph.graph.output.append(onnx.helper.make_empty_tensor_value_info(value))
        self.customs = [
            operator
            for operator in self.info.operators
            if operator.op in OPERATORS and OPERATORS[operator.op].legalization.onnx
        ]
        self.states = _states(self.info, names, self.types)
        self._kept: dict[str, Array] = {}
        network = CustomGraph(name, model, self.info, self.names, self.graph, self.known, self.customs)
        self._partitions = CustomPartitions(network) if self.customs else None
        self._session: Any = None if self.customs else session(self.graph, name)
        self._values: dict[str, Array] = {}

    @property
    def described(self) -> str:
        """The reference's name in reports.

        With plug-in operators: `ONNX Runtime 1.31.1 for 8 of 9 operators, ...`.
        """
        runtime = f"ONNX Runtime {version('onnxruntime')}"
        if not self.customs:
            return runtime
        total, names = len(self.graph.graph.node), [operator.op for operator in self.customs]
        plug_ins = [
            f"{computed_by(name)} for {names.count(name)} x {OPERATORS[name].legalization.onnx}"
            for name in dict.fromkeys(names)
        ]
        return ", ".join([f"{runtime} for {total - len(names)} of {total} operators", *plug_ins])

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        """Run once and return the outputs; `inputs` in the order of `self.inputs`, or by name."""
        arrays = [inputs[tensor.name] for tensor in self.inputs] if isinstance(inputs, Mapping) else list(inputs)
        feeds = {}
        for tensor, array in zip(self.inputs, arrays, strict=True):
            traced = self.names[tensor.index]
            feeds[traced.name] = traced.original(np.asarray(array), self.types[traced.name])
        for state in self.states:
            feeds[state.name] = self._kept.get(state.name, state.begin)
        self._values = dict(feeds)
        if self._partitions is not None:
            self._partitions.run(self._values)
        else:
            self._values.update(zip(self.known, self._session.run(self.known, feeds), strict=True))
        for state in self.states:
            self._kept[state.name] = state.traced.original(self.tensor(state.written), self.types[state.name])
        return [self.tensor(index) for index in self.info.outputs]

    def reset(self) -> None:
        """Reset the states from `model: {states: …}`."""
        self._kept = {}

    def has(self, index: int) -> bool:
        """Whether the tensor is a value of the ONNX graph."""
        return index in self.names

    def original(self, index: int) -> Array:
        """Return the tensor's value of the last run as ONNX Runtime has it."""
        return self._values[self.names[index].name]

    def tensor(self, index: int) -> Array:
        """Return a tensor of the last run; constants at any time."""
        tensor = self.info.tensors[index]
        if tensor.data is not None:
            return tensor.values()
        if index not in self.names:
            raise RunError(f"tensor {index} of {self.name} is no value of the ONNX graph")
        traced = self.names[index]
        return traced.laid(self._values[traced.name], tensor.dtype).reshape(tensor.shape)

    def computed(self) -> dict[int, Array]:
        """Return the tensors that are values of the ONNX graph by number, in operator order."""
        written = (index for operator in self.info.operators for index in operator.outputs)
        return {index: self.tensor(index) for index in written if index in self.names}


def _dtype(info: onnx.ValueInfoProto) -> str:
    """Return numpy's name for the type of an input."""
    return str(onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))


def imported_reference(model: Path, name: str) -> Reference | PartitionedReference | OnnxReference:
    """Return the reference of a TFLite file in import's artifact.

    ONNX Runtime for networks from ONNX, LiteRT for others.
    """
    data, networks = model.read_bytes(), onnx_networks(model)
    if not networks:
        return reference_of(data, name=name)
    info = read(data, name)
    references = []
    for network, partition in zip(networks, partitions_of(networks, info), strict=True):
        original = (model.parent / network.file).read_bytes()
        is_whole = len(partition.operators) == len(info.operators)
        part = data if is_whole else file_with(data, *(partition.operators, network.inputs, network.outputs))
        references.append((partition, OnnxReference(part, original, network.names, name=name)))
        if is_whole:
            return references[0][1]
    return PartitionedReference(data, name=name, networks=references)


def onnx_networks(model: Path) -> list[OnnxNetwork]:
    """Return the ONNX networks of a TFLite file in import's artifact."""
    path = model.with_name(networks_file(model.stem))
    return networks_from_json(path.read_text()) if path.exists() else []


def networks_file(stem: str) -> str:
    """Return the name of the file with the ONNX networks of `model` or `window`."""
    return NETWORKS if stem == "model" else f"{stem}_{NETWORKS}"


def partitions_of(networks: Sequence[OnnxNetwork], info: ModelInfo) -> list[Partition]:
    """Return the operators of ONNX networks as partitions of their TFLite file."""
    return [
        Partition(info.operators[slice(*network.operators)], network.inputs, network.outputs) for network in networks
    ]
