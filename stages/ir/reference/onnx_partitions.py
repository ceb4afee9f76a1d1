"""References of ONNX graphs with plug-in operators; ONNX Runtime computes the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.ir.arrays import Array
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.models.onnx_names import Traced
from stages.ir.operators.table import onnx_operator
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.onnx_session import part_of, session
from stages.ir.reference.partitions import file_with, run_plug_in
from stages.support.lazy import onnx


@dataclass(frozen=True)
class CustomGraph:
    """An ONNX graph and the TFLite file that import wrote for it.

    names    values of the ONNX graph by tensor number
    known    names of the values that the session returns
    customs  operators of plug-ins, in order
    """

    name: str
    model: bytes
    info: ModelInfo
    names: Mapping[int, Traced]
    graph: onnx.ModelProto
    known: Sequence[str]
    customs: Sequence[OperatorInfo]


class CustomPartitions:
    """Run a graph with plug-in operators: their references, and sessions for the parts between.

    An integer operator of a plug-in replaces the DequantizeLinear and QuantizeLinear around it as well.
    """

    def __init__(self, network: CustomGraph) -> None:
        self.network = network
        self._made = {index: operator for operator in network.info.operators for index in operator.outputs}
        self._results = {network.names[index].name for operator in network.customs for index in operator.outputs}
        self._sessions: dict[int, Any] = {}
        self._moves: dict[int, tuple[list[int], Reference]] = {}

    def run(self, values: dict[str, Array]) -> None:
        """Add all values with ONNX names to `values`, which has the inputs."""
        for at, operator in enumerate((*self.network.customs, None)):
            new_values = self._between(at, values)
            values.update(new_values)
            if operator is None:
                return
            results = run_plug_in(operator, self.network.info, lambda index: self._tensor(index, values))
            for index, array in zip(operator.outputs, results, strict=False):
                traced = self.network.names[index]
                values[traced.name] = traced.original(
                    array, self._dtype(traced.name, str(array.dtype), operator, values)
                )

    def _between(self, at: int, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the new values of ONNX Runtime after the first `at` plug-in operators."""
        if at not in self._sessions:
            reached = self._reached(values)
            names = [name for name in self.network.known if name in reached and name not in values]
            part = part_of(self.network.graph, names, values)
            self._sessions[at] = names, (session(part, self.network.name) if names else None)
        names, runs = self._sessions[at]
        if runs is None:
            return {}
        feeds = {port.name: values[port.name] for port in runs.get_inputs()}
        return dict(zip(names, runs.run(names, feeds), strict=True))

    def _reached(self, values: Mapping[str, Array]) -> set[str]:
        """Return the names that follow from `values` without pending plug-in operators."""
        graph = self.network.graph.graph
        reached = {*values, *(constant.name for constant in graph.initializer)}
        for node in graph.node:
            is_plug_in = onnx_operator(f"{node.domain}.{node.op_type}") is not None
            if not is_plug_in and all(name in reached for name in node.input if name):
                reached.update(name for name in node.output if name not in self._results)
        return reached

    def _tensor(self, index: int, values: Mapping[str, Array]) -> Array:
        """Return an input tensor of a plug-in operator.

        Tensors without an ONNX name are moved integers, which LiteRT computes.
        """
        tensor = self.network.info.tensors[index]
        if tensor.data is not None:
            return tensor.values()
        if index in self.network.names:
            traced = self.network.names[index]
            return traced.laid(values[traced.name], tensor.dtype).reshape(tensor.shape)
        if index not in self._moves:
            operators, ends = self._moving(index)
            data = file_with(self.network.model, operators, ends, [index])
            self._moves[index] = ends, Reference(data, name=self.network.name)
        ends, reference = self._moves[index]
        return reference.run([self._tensor(end, values) for end in ends])[0]

    def _moving(self, index: int) -> tuple[list[OperatorInfo], list[int]]:
        """Return the operators that compute a tensor from named ones, in order, and the latter."""
        operators, ends, pending = {}, dict[int, None](), [index]
        while pending:
            operator = self._made[pending.pop()]
            operators[operator.index] = operator
            for source in operator.inputs:
                if source < 0 or self.network.info.tensors[source].data is not None:
                    continue
                if source in self.network.names:
                    ends[source] = None
                else:
                    pending.append(source)
        return [operators[at] for at in sorted(operators)], sorted(ends)

    def _dtype(self, name: str, dtype: str, operator: OperatorInfo, values: Mapping[str, Array]) -> str:
        """Return the ONNX type of a plug-in's result.

        `dtype` is its type in the TFLite file. int8 may stand for uint8.
        """
        if dtype != "int8":
            return dtype
        graph = self.network.graph.graph
        constants = {constant.name: constant.data_type for constant in graph.initializer}
        constants |= {
            node.output[0]: node.attribute[0].t.data_type for node in graph.node if node.op_type == "Constant"
        }
        for node in graph.node:
            is_written, read = name in node.output, node.op_type == "DequantizeLinear" and node.input[0] == name
            if (is_written and node.op_type == "QuantizeLinear") or read:
                unsigned = len(node.input) < 3 or constants.get(node.input[2]) == onnx.TensorProto.UINT8
                return "uint8" if unsigned else "int8"
        read_here = [self.network.names[index].name for index in operator.inputs if index in self.network.names]
        return str(values[read_here[0]].dtype) if read_here else dtype
