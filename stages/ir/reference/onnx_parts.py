"""An ONNX graph with operators of plug-ins: their references compute these, ONNX Runtime what stands between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stages.ir.models.tflite_reader import OperatorInfo
from stages.ir.operators.table import onnx_operator
from stages.ir.reference.interpreter import Array, Reference
from stages.ir.reference.onnx_session import part_of, session
from stages.ir.reference.parts import computed, file_of

if TYPE_CHECKING:
    from stages.ir.reference.onnx_runtime import OnnxReference


class CustomParts:
    """Runs a graph in which operators of plug-ins are: these by their own references, what stands between by sessions.

    An operator of integers stands for the DequantizeLinear and QuantizeLinear around it as well.
    """

    def __init__(self, whole: OnnxReference) -> None:
        self.whole = whole
        self._made = {index: operator for operator in whole.info.operators for index in operator.outputs}
        self._results = {whole.names[index].name for operator in whole.customs for index in operator.outputs}
        self._sessions: dict[int, Any] = {}
        self._moves: dict[int, tuple[list[int], Reference]] = {}

    def run(self, values: dict[str, Array]) -> None:
        """Adds all values that have names to those of the inputs."""
        for at, operator in enumerate((*self.whole.customs, None)):
            found = self._between(at, values)
            values.update(found)
            if operator is None:
                return
            made = computed(operator, self.whole.info, lambda index: self._tensor(index, values))
            for index, array in zip(operator.outputs, made, strict=False):
                traced = self.whole.names[index]
                values[traced.name] = traced.original(
                    array, self._dtype(traced.name, str(array.dtype), operator, values)
                )

    def _between(self, at: int, values: Mapping[str, Array]) -> dict[str, Array]:
        """What ONNX Runtime knows once `at` operators of plug-ins are computed, and did not know before."""
        if at not in self._sessions:
            reached = self._reached(values)
            names = [name for name in self.whole.known if name in reached and name not in values]
            part = part_of(self.whole.graph, names, values)
            self._sessions[at] = names, (session(part, self.whole.name) if names else None)
        names, runs = self._sessions[at]
        if runs is None:
            return {}
        given = {one.name: values[one.name] for one in runs.get_inputs()}
        return dict(zip(names, runs.run(names, given), strict=True))

    def _reached(self, values: Mapping[str, Array]) -> set[str]:
        """The names of all that follows from `values`, and not from what plug-ins are still to compute."""
        graph = self.whole.graph.graph
        found = {*values, *(one.name for one in graph.initializer)}
        for node in graph.node:
            foreign = onnx_operator(f"{node.domain}.{node.op_type}") is not None
            if not foreign and all(name in found for name in node.input if name):
                found.update(name for name in node.output if name not in self._results)
        return found

    def _tensor(self, index: int, values: Mapping[str, Array]) -> Array:
        """A tensor that a plug-in's operator reads. What has no name in ONNX is moved integers: LiteRT moves them."""
        tensor = self.whole.info.tensors[index]
        if tensor.data is not None:
            return tensor.values()
        if index in self.whole.names:
            traced = self.whole.names[index]
            return traced.laid(values[traced.name], tensor.dtype).reshape(tensor.shape)
        if index not in self._moves:
            operators, ends = self._moving(index)
            data = file_of(self.whole.model, operators, ends, [index])
            self._moves[index] = ends, Reference(data, name=self.whole.name)
        ends, reference = self._moves[index]
        return reference.run([self._tensor(end, values) for end in ends])[0]

    def _moving(self, index: int) -> tuple[list[OperatorInfo], list[int]]:
        """The operators that make a tensor of such with names, in order, and these."""
        operators, ends, wanted = {}, dict[int, None](), [index]
        while wanted:
            operator = self._made[wanted.pop()]
            operators[operator.index] = operator
            for one in operator.inputs:
                if one < 0 or self.whole.info.tensors[one].data is not None:
                    continue
                if one in self.whole.names:
                    ends[one] = None
                else:
                    wanted.append(one)
        return [operators[at] for at in sorted(operators)], sorted(ends)

    def _dtype(self, name: str, dtype: str, operator: OperatorInfo, values: Mapping[str, Array]) -> str:
        """The type in ONNX of a plug-in's result, which is `dtype` in the TFLite file: int8 may stand for uint8."""
        import onnx

        if dtype != "int8":
            return dtype
        graph = self.whole.graph.graph
        constants = {one.name: one.data_type for one in graph.initializer}
        constants |= {
            node.output[0]: node.attribute[0].t.data_type for node in graph.node if node.op_type == "Constant"
        }
        for node in graph.node:
            made, read = name in node.output, node.op_type == "DequantizeLinear" and node.input[0] == name
            if (made and node.op_type == "QuantizeLinear") or read:
                unsigned = len(node.input) < 3 or constants.get(node.input[2]) == onnx.TensorProto.UINT8
                return "uint8" if unsigned else "int8"
        read_here = [self.whole.names[index].name for index in operator.inputs if index in self.whole.names]
        return str(values[read_here[0]].dtype) if read_here else dtype
