"""Append operators on some rows of a graph's tensors."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.import_model.incremental.rows import Range, Rows
from stages.import_model.normalize.graph import OneGraph
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.operators.table import OPERATORS


class Writer:
    """Writes new operators of `graph` on the tensors of the original network, `info`.

    Tensors of the original network keep their numbers; `finish` removes those that nothing uses.
    """

    def __init__(self, graph: OneGraph, info: ModelInfo) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.graph, self.info, self._schema = graph, info, schema
        self._operators: list[Any] = []
        self._codes: dict[str, int] = {}
        self._names: set[bytes] = set()
        self._original_names = [tensor.name or b"" for tensor in graph.tensors]

    # ---- tensors ------------------------------------------------------------------------------------------------

    def value(self, index: int) -> npt.NDArray[Any]:
        """Return the value of a constant of the original network."""
        return self.info.tensors[index].values()

    def tensor(self, like: int, shape: Sequence[int], suffix: str = "", *, variable: bool = False) -> int:
        """Append a tensor with the type and quantization of `like`."""
        tensor = copy.copy(self.graph.tensors[like])
        tensor.name = self._name((tensor.name or b"") + suffix.encode())
        tensor.shape, tensor.shapeSignature, tensor.hasRank = np.asarray(shape, np.int32), None, True
        tensor.buffer, tensor.isVariable = 0, variable
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def rows_like(self, index: int, rows: Rows, count: int, suffix: str = "", *, variable: bool = False) -> int:
        """Append a tensor with `count` rows of a tensor of the original network."""
        shape = rows.shape(self.info.tensors[index].shape, count)
        return self.tensor(index, shape, suffix, variable=variable)

    def constant(self, name: str, values: npt.NDArray[Any]) -> int:
        """Append a constant of integers."""
        code = getattr(self._schema.TensorType, str(values.dtype).upper())
        self.graph.tensors.append(self._schema.TensorT(name=self._name(name.encode()), type=code, hasRank=True))
        index = len(self.graph.tensors) - 1
        self.graph.make_constant({index: values})
        return index

    def constant_like(self, like: int, values: npt.NDArray[Any], suffix: str) -> int:
        """Append a constant with the type and quantization of `like`."""
        index = self.tensor(like, values.shape, suffix)
        self.graph.make_constant({index: values})
        return index

    def rename(self, index: int, original: int) -> None:
        """Give a tensor the name of an original output, unless another tensor has it."""
        name = self._original_names[original]
        if name not in self._names:
            self.graph.tensors[index].name = name
            self._names.add(name)

    def _name(self, name: bytes) -> bytes:
        unique, count = name, 0
        while unique in self._names:
            count += 1
            unique = name + b"_%d" % count
        self._names.add(unique)
        return unique

    def _shape(self, index: int) -> list[int]:
        return [int(size) for size in self.graph.tensors[index].shape]

    # ---- operators ----------------------------------------------------------------------------------------------

    def copied(
        self, operator: OperatorInfo, inputs: Mapping[int, int], outputs: Sequence[int], *, padding: int | None = None
    ) -> None:
        """Append a copy of an operator with other tensors.

        Keeps its padding if `padding` is None.
        """
        original = self.graph.operators[operator.index]
        new = copy.copy(original)
        new.inputs = np.array([inputs.get(at, index) for at, index in enumerate(operator.inputs)], np.int32)
        new.outputs = np.array(outputs, np.int32)
        if padding is not None:
            new.builtinOptions = copy.copy(original.builtinOptions)
            new.builtinOptions.padding = padding
        self._operators.append(new)

    def _append(self, op: str, inputs: Sequence[int], outputs: Sequence[int], table: str, **options: Any) -> None:
        schema = self._schema
        new = schema.OperatorT(opcodeIndex=self._code(op))
        new.inputs, new.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
        new.builtinOptionsType = getattr(schema.BuiltinOptions, table)
        new.builtinOptions = getattr(schema, f"{table}T")(**options)
        self._operators.append(new)

    def _code(self, op: str) -> int:
        if op not in self._codes:
            code, version = getattr(self._schema.BuiltinOperator, op), OPERATORS[op].litert.version
            self.graph.codes.append(
                self._schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version)
            )
            self._codes[op] = len(self.graph.codes) - 1
        return self._codes[op]

    def reshape(self, source: int, result: int) -> None:
        """Append a RESHAPE to the result's shape."""
        shape = np.array(self._shape(result), np.int32)
        self._append("RESHAPE", [source, self.constant("shape", shape)], [result], "ReshapeOptions", newShape=shape)

    def pad(self, source: int, amounts: npt.NDArray[np.int32]) -> int:
        """Append a PAD; return its result."""
        shape = [size + int(sum(pads)) for size, pads in zip(self._shape(source), amounts, strict=True)]
        result = self.tensor(source, shape, "/padded")
        self._append("PAD", [source, self.constant("pads", amounts)], [result], "PadOptions")
        return result

    def slice(self, source: int, result: int, bounds: Sequence[Range]) -> None:
        """Append a STRIDED_SLICE from begin to end of each axis."""
        begin, end = (np.array(values, np.int32) for values in zip(*bounds, strict=True))
        constants = [("begin", begin), ("end", end), ("strides", np.ones(len(bounds), np.int32))]
        inputs = [source, *(self.constant(name, values) for name, values in constants)]
        self._append("STRIDED_SLICE", inputs, [result], "StridedSliceOptions")

    def part_of(self, source: int, rows: Rows, present: Range, wanted: Range, suffix: str = "/part") -> int:
        """Return the rows `wanted` of a tensor that has the rows `present`."""
        if present == wanted:
            return source
        result = self.tensor(source, rows.shape(self._shape(source), wanted[1] - wanted[0]), suffix)
        bounds = [(0, size) for size in self._shape(source)]
        bounds[rows.axis] = (wanted[0] - present[0]) * rows.unit, (wanted[1] - present[0]) * rows.unit
        self.slice(source, result, bounds)
        return result

    def joined(self, parts: Sequence[int], rows: Rows, suffix: str = "/rows") -> int:
        """Return tensors joined along time."""
        if len(parts) == 1:
            return parts[0]
        axis_size = sum(self._shape(part)[rows.axis] for part in parts)
        shape = self._shape(parts[-1])
        shape[rows.axis] = axis_size
        result = self.tensor(parts[-1], shape, suffix)
        self._append("CONCATENATION", parts, [result], "ConcatenationOptions", axis=rows.axis)
        return result

    def read_variable(self, variable: int) -> int:
        """Append a READ_VARIABLE; return its result."""
        result = self.tensor(variable, self._shape(variable), "/read")
        self._append("READ_VARIABLE", [variable], [result], "ReadVariableOptions")
        return result

    def assign_variable(self, variable: int, value: int, initial: int) -> None:
        """Append an ASSIGN_VARIABLE in the form of stages.import_model.normalize.variables."""
        written = self.tensor(variable, self._shape(variable), "/written")
        self._append("ASSIGN_VARIABLE", [variable, value, initial], [written], "AssignVariableOptions")

    # ---- file ---------------------------------------------------------------------------------------------------

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """Return the file of the new operators.

        Omits unused tensors and operator codes of the original network.
        """
        graph = self.graph
        graph.operators = self._operators
        used = {*inputs, *outputs}
        for operator in graph.operators:
            used |= {int(index) for index in (*operator.inputs, *operator.outputs) if index >= 0}
        tensors = sorted(used)
        numbers = {index: number for number, index in enumerate(tensors)} | {-1: -1}
        codes = sorted({operator.opcodeIndex for operator in graph.operators})
        for operator in graph.operators:
            operator.inputs = np.array([numbers[int(index)] for index in operator.inputs], np.int32)
            operator.outputs = np.array([numbers[int(index)] for index in operator.outputs], np.int32)
            operator.opcodeIndex = codes.index(operator.opcodeIndex)
        graph.tensors = [graph.tensors[index] for index in tensors]
        graph.codes = [graph.codes[index] for index in codes]
        graph.inputs, graph.outputs = ([numbers[index] for index in ports] for ports in (inputs, outputs))
        graph.fix_axes()
        return graph.pack()
