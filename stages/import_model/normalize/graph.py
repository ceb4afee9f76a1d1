"""One graph of a TFLite file, with composites replaced by their operators, for writing."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.models.graphs import Composite, composites
from stages.ir.models.tflite_reader import buffers, opened, read
from stages.ir.models.tflite_writer import finished
from stages.support.lazy import schema

_MOST_OPERATORS = 100_000  # nested composites can multiply without limit


@dataclass
class OneGraph:
    """Tensors and operators as mutable objects of the schema (`TensorT`, `OperatorT`).

    Tensors of the graph keep their numbers; tensors inside of composites follow them. `composites` counts the replaced
    composites by name.
    """

    codes: list[Any]
    buffers: list[memoryview]
    tensors: list[Any] = field(default_factory=list)
    operators: list[Any] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    composites: Counter[str] = field(default_factory=Counter)

    def fix_axes(self) -> None:
        """Move scales on an axis that their tensor does not have to axis 0."""
        for tensor in self.tensors:
            quantization, rank = tensor.quantization, len(_shape(tensor))
            if quantization is None or quantization.scale is None or not len(quantization.scale):
                continue
            axis = quantization.quantizedDimension
            if axis < 0 or 0 < rank <= axis:
                quantization.quantizedDimension = 0

    def set_shapes(self, shapes: Mapping[int, tuple[int, ...]]) -> None:
        """Set fixed shapes of tensors, by number."""
        for index, shape in shapes.items():
            tensor = self.tensors[index]
            tensor.shape, tensor.shapeSignature, tensor.hasRank = np.asarray(shape, dtype=np.int32), None, True

    def make_constant(self, values: Mapping[int, Any]) -> None:
        """Set the values of tensors, by number."""
        self.set_shapes({index: array.shape for index, array in values.items()})
        for index, array in values.items():
            self.tensors[index].buffer = len(self.buffers)
            self.buffers.append(memoryview(np.ascontiguousarray(array).tobytes()))

    def remove(self, operators: Collection[int]) -> None:
        """Remove operators, by number."""
        self.operators = [operator for number, operator in enumerate(self.operators) if number not in operators]

    def pack(self, **fields: Any) -> bytes:
        """Return the graph as a TFLite file; `fields` are further fields of `ModelT`."""
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
    """Return the subgraph with that number. Raises StageError if it is corrupt or recursive."""
    with opened(data, name) as model:
        stored = buffers(model)
    try:
        return _Flattening(data, name, stored).flattened(subgraph)
    except StageError:
        raise
    except Exception as error:  # the schema's generated code does not check the file and raises various exceptions
        reason = f"a table of subgraph {subgraph} points beyond the file"
        raise StageError(
            f"{name} is a corrupt TFLite file ({len(data)} bytes): {reason}", hint="Export or download it again."
        ) from error


class _Flattening:
    """Copy a subgraph and the decompositions of its composites into a OneGraph."""

    def __init__(self, data: bytes, name: str, stored: list[memoryview]) -> None:
        self._data, self._name, self._schema = data, name, schema
        self._model = schema.Model.GetRootAs(data, 0)
        codes = [self._model.OperatorCodes(index) for index in range(self._model.OperatorCodesLength())]
        self._flat = OneGraph([schema.OperatorCodeT.InitFromObj(code) for code in codes], stored)

    def flattened(self, subgraph: int) -> OneGraph:
        """Return the subgraph with all composites replaced."""
        read(self._data, self._name, subgraph)
        graph = self._model.Subgraphs(subgraph)
        places = {index: index for index in range(graph.TensorsLength())}
        self._flat.tensors = [self._tensor(graph, index) for index in places]
        self._flat.inputs = _inputs(graph)
        self._operators(subgraph, places, (subgraph,))
        self._flat.outputs = [places[index] for index in _outputs(graph)]
        return self._flat

    def _tensor(self, graph: Any, index: int) -> Any:
        return self._schema.TensorT.InitFromObj(graph.Tensors(index))

    def _operators(self, subgraph: int, places: dict[int, int], within: tuple[int, ...]) -> None:
        """Append the operators of a subgraph, and its tensors that are not in `places` yet."""
        graph, inner = self._model.Subgraphs(subgraph), composites(self._data, self._name, subgraph)

        def place(index: int) -> int:
            if index >= 0 and index not in places:
                places[index] = len(self._flat.tensors)
                self._flat.tensors.append(self._tensor(graph, index))
            return places[index] if index >= 0 else -1

        for index in range(graph.OperatorsLength()):
            inputs, outputs = _inputs(graph.Operators(index)), _outputs(graph.Operators(index))
            intermediates = [place(tensor) for tensor in _intermediates(graph.Operators(index))]
            read_at, written_at = [place(tensor) for tensor in inputs], [place(tensor) for tensor in outputs]
            if len(self._flat.operators) + self._flat.composites.total() >= _MOST_OPERATORS:
                raise StageError(f"{self._name} has composites with {_MOST_OPERATORS:,} operators or more")
            if index in inner:
                results = self._composite(inner[index], read_at, written_at, within)
                places.update(zip(outputs, results, strict=True))
                continue
            operator = self._schema.OperatorT.InitFromObj(graph.Operators(index))
            operator.inputs = np.asarray(read_at, dtype=np.int32)
            operator.outputs = np.asarray(written_at, dtype=np.int32)
            operator.intermediates = np.asarray(intermediates, dtype=np.int32) if intermediates else None
            self._flat.operators.append(operator)

    def _composite(
        self, composite: Composite, inputs: list[int], outputs: list[int], within: tuple[int, ...]
    ) -> list[int]:
        """Append a composite's decomposition; return where its results are."""
        if composite.subgraph in within:
            raise StageError(f"{self._name}: composite {composite.name!r} is recursive")
        info = read(self._data, self._name, composite.subgraph)
        graph = self._model.Subgraphs(composite.subgraph)
        parameters, results = _inputs(graph), _outputs(graph)
        if len(parameters) != len(inputs) or len(results) != len(outputs):
            raise StageError(
                f"{self._name}: composite {composite.name!r} has {len(inputs)} inputs and {len(outputs)} outputs, "
                f"its decomposition (subgraph {composite.subgraph}) has {len(parameters)} and {len(results)}"
            )
        self._flat.composites[composite.name] += 1
        places = {parameter: argument for parameter, argument in zip(parameters, inputs, strict=True) if argument >= 0}
        computed = {index for operator in info.operators for index in operator.outputs}
        for result, wanted in zip(results, outputs, strict=True):
            if result in computed:
                places.setdefault(result, wanted)
        self._operators(composite.subgraph, places, (*within, composite.subgraph))
        for result in results:
            if result not in places:  # a constant
                places[result] = len(self._flat.tensors)
                self._flat.tensors.append(self._tensor(graph, result))
        return [places[result] for result in results]


def _shape(tensor: Any) -> list[int]:
    return [] if tensor.shape is None else [int(size) for size in tensor.shape]


def _inputs(table: Any) -> list[int]:
    """Return the tensors that a graph or an operator reads."""
    return [int(table.Inputs(index)) for index in range(table.InputsLength())]


def _outputs(table: Any) -> list[int]:
    """Return the tensors that a graph or an operator writes."""
    return [int(table.Outputs(index)) for index in range(table.OutputsLength())]


def _intermediates(operator: Any) -> list[int]:
    """Return an operator's tensors for intermediate results."""
    return [int(operator.Intermediates(index)) for index in range(operator.IntermediatesLength())]
