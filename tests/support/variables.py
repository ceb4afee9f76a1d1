"""TFLite files with resource variables, as Keras has streaming networks converted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_writer import Tensor

Quant = tuple[float, int]


class Streaming(ModelBuilder):
    """A model under construction: `variable` makes a resource with what it begins with, None for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._begins: dict[str, tuple[np.ndarray, Quant | None] | None] = {}
        self._steps: list[Callable[[], None]] = []

    def resource(self, name: str, begin: np.ndarray | None, quant: Quant | None = None) -> Tensor:
        """The handle of a variable."""
        self._begins[name] = None if begin is None else (begin, quant)
        handle = self.tensor(f"{name}/handle", (1,), "int32")
        self.operator("VAR_HANDLE", [], [handle], "VarHandleOptions", {"sharedName": name})
        return handle

    def read(self, handle: Tensor, shape: tuple[int, ...], dtype: str, quant: Quant | None = None) -> Tensor:
        made = self.tensor(handle.name.replace("handle", "read"), shape, dtype, *(quant or ()))
        self.operator("READ_VARIABLE", [handle], [made], "ReadVariableOptions")
        return made

    def assign(self, handle: Tensor, value: Tensor) -> None:
        self.operator("ASSIGN_VARIABLE", [handle, value], [], "AssignVariableOptions")

    def build(self) -> bytes:
        """With the graph that gives variables their first values, which CALL_ONCE runs, and handles as resources."""
        begins = {name: begin for name, begin in self._begins.items() if begin is not None}
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(super().build(), 0))
        graph = model.subgraphs[0]
        for tensor in graph.tensors:
            if tensor.name.endswith(b"/handle"):
                tensor.type, tensor.shape = schema.TensorType.RESOURCE, np.zeros(0, np.int32)
        if begins:
            model.subgraphs.append(_beginning(model, begins))
            code = _code(model, schema.BuiltinOperator.CALL_ONCE)
            once = schema.OperatorT(opcodeIndex=code, inputs=np.zeros(0, np.int32), outputs=np.zeros(0, np.int32))
            once.builtinOptionsType = schema.BuiltinOptions.CallOnceOptions
            once.builtinOptions = schema.CallOnceOptionsT(initSubgraphIndex=1)
            graph.operators.insert(0, once)
        builder = flatbuffers.Builder(4096)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


def _beginning(model: schema.ModelT, begins: Mapping[str, tuple[np.ndarray, Quant | None]]) -> schema.SubGraphT:
    handle, assign = (
        _code(model, code) for code in (schema.BuiltinOperator.VAR_HANDLE, schema.BuiltinOperator.ASSIGN_VARIABLE)
    )
    tensors, operators = [], []
    for number, (name, (values, quant)) in enumerate(begins.items()):
        model.buffers.append(schema.BufferT(data=np.frombuffer(values.tobytes(), np.uint8)))
        constant = schema.TensorT(name=name, shape=np.array(values.shape, np.int32), buffer=len(model.buffers) - 1)
        constant.type = getattr(schema.TensorType, str(values.dtype).upper())
        if quant is not None:
            scale, zero_point = np.array([quant[0]], np.float32), np.array([quant[1]], np.int64)
            constant.quantization = schema.QuantizationParametersT(scale=scale, zeroPoint=zero_point)
        resource = schema.TensorT(name=f"{name}/first", shape=np.zeros(0, np.int32), type=schema.TensorType.RESOURCE)
        tensors += [constant, resource]
        options = schema.VarHandleOptionsT(sharedName=name)
        made = schema.OperatorT(
            opcodeIndex=handle, inputs=np.zeros(0, np.int32), outputs=np.array([2 * number + 1], np.int32)
        )
        made.builtinOptionsType, made.builtinOptions = schema.BuiltinOptions.VarHandleOptions, options
        given = np.array([2 * number + 1, 2 * number], np.int32)
        operators += [made, schema.OperatorT(opcodeIndex=assign, inputs=given, outputs=np.zeros(0, np.int32))]
    nothing = np.zeros(0, np.int32)
    return schema.SubGraphT(name="begin", tensors=tensors, operators=operators, inputs=nothing, outputs=nothing)


def _code(model: schema.ModelT, code: int) -> int:
    """The number of an operator code, which the model gets unless it has it."""
    for number, known in enumerate(model.operatorCodes):
        if known.builtinCode == code:
            return number
    model.operatorCodes.append(schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=1))
    return len(model.operatorCodes) - 1


def frames(dtype: str) -> bytes:
    """A network that remembers the last four frames, and a sum of its results; what it begins with is not zero."""
    rng, b = np.random.default_rng(2), Streaming()
    quant, sums = ((0.05, -3), (0.1, 4)) if dtype == "int8" else (None, None)
    integers = quant is not None
    x = b.input("x", (1, 1, 6), dtype, *(quant or ()))
    begin = np.full((1, 4, 6), -3, np.int8) if integers else rng.normal(0, 1, (1, 4, 6)).astype(np.float32)
    kept = b.resource("frames", begin, quant)
    together = b.concatenation([b.read(kept, (1, 4, 6), dtype, quant), x], 1, name="all")
    b.assign(kept, b.strided_slice(together, (0, 1, 0), (1, 5, 6), name="new"))
    weights = rng.integers(-127, 128, (3, 30))
    given = weights.astype(np.int8) if integers else (weights / 100).astype(np.float32)
    y = b.fully_connected(b.reshape(together, (1, 30)), given, weight_scale=0.01 if integers else None, out=sums)
    count = b.resource("count", np.array([0, 20, 40], dtype), sums)
    total = b.add(b.reshape(y, (3,), name="flat"), b.read(count, (3,), dtype, sums), out=sums, name="sum")
    b.assign(count, total)
    b.output(total, y)
    return b.build()
