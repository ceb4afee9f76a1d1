"""One graph of a TFLite file, with composites replaced by the operators they stand for, to be written as a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.models.graphs import Composite, composites
from stages.ir.models.tflite_reader import buffers, opened, read
from stages.ir.models.tflite_writer import finished

_MOST_OPERATORS = 100_000  # composites of composites can multiply without end


@dataclass
class OneGraph:
    """Tensors and operators as the schema's objects (`TensorT`, `OperatorT`), to be changed and then packed.

    Tensors of the file's graph keep their numbers; those inside of composites come after them. `composites` counts
    what was replaced, by name.
    """

    codes: list[Any]
    buffers: list[memoryview]
    tensors: list[Any] = field(default_factory=list)
    operators: list[Any] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    composites: Counter[str] = field(default_factory=Counter)

    def mend_axes(self) -> None:
        """Scales on an axis that their tensor does not have go to axis 0: one scale has none, a list only this one."""
        for tensor in self.tensors:
            quantization, rank = tensor.quantization, len(_shape(tensor))
            if quantization is None or quantization.scale is None or not len(quantization.scale):
                continue
            axis = quantization.quantizedDimension
            if axis < 0 or 0 < rank <= axis:
                quantization.quantizedDimension = 0

    def set_shapes(self, shapes: Mapping[int, tuple[int, ...]]) -> None:
        """Gives tensors, by number, fixed shapes."""
        for index, shape in shapes.items():
            tensor = self.tensors[index]
            tensor.shape, tensor.shapeSignature, tensor.hasRank = np.asarray(shape, dtype=np.int32), None, True

    def make_constant(self, values: Mapping[int, Any]) -> None:
        """Gives tensors, by number, values."""
        self.set_shapes({index: array.shape for index, array in values.items()})
        for index, array in values.items():
            self.tensors[index].buffer = len(self.buffers)
            self.buffers.append(memoryview(np.ascontiguousarray(array).tobytes()))

    def remove(self, operators: Collection[int]) -> None:
        """Takes operators, by number, out."""
        self.operators = [operator for number, operator in enumerate(self.operators) if number not in operators]

    def pack(self, **fields: Any) -> bytes:
        """The graph as a TFLite file, with the buffers it uses; `fields` are others of the schema's `ModelT`."""
        from ai_edge_litert import schema_py_generated as schema

        used = sorted({tensor.buffer for tensor in self.tensors if len(self.buffers[tensor.buffer])})
        places = {number: place for place, number in enumerate(used, 1)}
        numbers = [tensor.buffer for tensor in self.tensors]
        for tensor in self.tensors:
            tensor.buffer = places.get(tensor.buffer, 0)
        graph = schema.SubGraphT(
            tensors=self.tensors,
            inputs=np.asarray(self.inputs, dtype=np.int32),
            outputs=np.asarray(self.outputs, dtype=np.int32),
            operators=self.operators,
        )
        data = finished(self.codes, graph, [bytes(self.buffers[number]) for number in used], **fields)
        for tensor, number in zip(self.tensors, numbers, strict=True):
            tensor.buffer = number
        return data


def one_graph(data: bytes, name: str, subgraph: int) -> OneGraph:
    """The graph with that number. Raises StageError when it or a decomposition in it is corrupt, or never ends."""
    with opened(data, name) as model:
        stored = buffers(model)
    try:
        return _Flattening(data, name, stored).whole(subgraph)
    except StageError:
        raise
    except Exception as error:  # the schema's generated code trusts the file and raises anything
        told = f"a table of subgraph {subgraph} points beyond the file"
        raise StageError(
            f"{name} is a corrupt TFLite file ({len(data)} bytes): {told}", hint="Export or download it again."
        ) from error


class _Flattening:
    def __init__(self, data: bytes, name: str, stored: list[memoryview]) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self._data, self._name, self._schema = data, name, schema
        self._model = schema.Model.GetRootAs(data, 0)
        codes = [self._model.OperatorCodes(index) for index in range(self._model.OperatorCodesLength())]
        self._made = OneGraph([schema.OperatorCodeT.InitFromObj(code) for code in codes], stored)

    def whole(self, subgraph: int) -> OneGraph:
        read(self._data, self._name, subgraph)
        graph = self._model.Subgraphs(subgraph)
        places = {index: index for index in range(graph.TensorsLength())}
        self._made.tensors = [self._tensor(graph, index) for index in places]
        self._made.inputs = _inputs(graph)
        self._operators(subgraph, places, (subgraph,))
        self._made.outputs = [places[index] for index in _outputs(graph)]
        return self._made

    def _tensor(self, graph: Any, index: int) -> Any:
        return self._schema.TensorT.InitFromObj(graph.Tensors(index))

    def _operators(self, subgraph: int, places: dict[int, int], within: tuple[int, ...]) -> None:
        """Appends the operators of a graph whose tensors are at `places`; what is not there yet is appended too."""
        graph, inner = self._model.Subgraphs(subgraph), composites(self._data, self._name, subgraph)

        def place(index: int) -> int:
            if index >= 0 and index not in places:
                places[index] = len(self._made.tensors)
                self._made.tensors.append(self._tensor(graph, index))
            return places[index] if index >= 0 else -1

        for index in range(graph.OperatorsLength()):
            inputs, outputs = _inputs(graph.Operators(index)), _outputs(graph.Operators(index))
            between = [place(tensor) for tensor in _intermediates(graph.Operators(index))]
            read_at, written_at = [place(tensor) for tensor in inputs], [place(tensor) for tensor in outputs]
            if len(self._made.operators) + self._made.composites.total() >= _MOST_OPERATORS:
                raise StageError(f"{self._name} has composites of {_MOST_OPERATORS:,} operators and more")
            if index in inner:
                found = self._composite(inner[index], read_at, written_at, within)
                places.update(zip(outputs, found, strict=True))
                continue
            operator = self._schema.OperatorT.InitFromObj(graph.Operators(index))
            operator.inputs = np.asarray(read_at, dtype=np.int32)
            operator.outputs = np.asarray(written_at, dtype=np.int32)
            operator.intermediates = np.asarray(between, dtype=np.int32) if between else None
            self._made.operators.append(operator)

    def _composite(
        self, composite: Composite, inputs: list[int], outputs: list[int], within: tuple[int, ...]
    ) -> list[int]:
        """Appends what the composite stands for; where its results are: at `outputs`, or where they already were."""
        if composite.subgraph in within:
            raise StageError(f"{self._name}: composite {composite.name!r} is made of itself")
        info = read(self._data, self._name, composite.subgraph)
        graph = self._model.Subgraphs(composite.subgraph)
        parameters, results = _inputs(graph), _outputs(graph)
        if len(parameters) != len(inputs) or len(results) != len(outputs):
            raise StageError(
                f"{self._name}: composite {composite.name!r} has {len(inputs)} inputs and {len(outputs)} outputs, what "
                f"it stands for (subgraph {composite.subgraph}) has {len(parameters)} and {len(results)}"
            )
        self._made.composites[composite.name] += 1
        places = {parameter: given for parameter, given in zip(parameters, inputs, strict=True) if given >= 0}
        computed = {index for operator in info.operators for index in operator.outputs}
        for result, wanted in zip(results, outputs, strict=True):
            if result in computed:
                places.setdefault(result, wanted)
        self._operators(composite.subgraph, places, (*within, composite.subgraph))
        for result in results:
            if result not in places:  # a constant
                places[result] = len(self._made.tensors)
                self._made.tensors.append(self._tensor(graph, result))
        return [places[result] for result in results]


def _shape(tensor: Any) -> list[int]:
    return [] if tensor.shape is None else [int(size) for size in tensor.shape]


def _inputs(table: Any) -> list[int]:
    """The tensors that a graph or an operator reads."""
    return [int(table.Inputs(index)) for index in range(table.InputsLength())]


def _outputs(table: Any) -> list[int]:
    return [int(table.Outputs(index)) for index in range(table.OutputsLength())]


def _intermediates(operator: Any) -> list[int]:
    """The tensors that stand for what an operator computes on the way."""
    return [int(operator.Intermediates(index)) for index in range(operator.IntermediatesLength())]
