"""Malformed models by program: a sound file of one or two operators, altered through the schema's objects."""

from collections.abc import Callable, Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stages.ir.models.builder import ModelBuilder, Tensor

Alteration = Callable[[Any, Any], None]


def altered(data: bytes, *alterations: Alteration) -> bytes:
    """The file after each alteration, a function of the schema's ModelT and its first SubGraphT."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    for alteration in alterations:
        alteration(model, model.subgraphs[0])
    builder = flatbuffers.Builder(len(data) + 4096)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def option(name: str, value: Any, operator: int = 0) -> Alteration:
    def change(model: Any, graph: Any) -> None:
        assert hasattr(graph.operators[operator].builtinOptions, name), name
        setattr(graph.operators[operator].builtinOptions, name, value)

    return change


def no_options(model: Any, graph: Any) -> None:
    graph.operators[0].builtinOptions, graph.operators[0].builtinOptionsType = None, 0


def other_options(table: str) -> Alteration:
    def change(model: Any, graph: Any) -> None:
        graph.operators[0].builtinOptions = getattr(schema, f"{table}T")()
        graph.operators[0].builtinOptionsType = getattr(schema.BuiltinOptions, table)

    return change


def indices(side: str, values: Sequence[int], operator: int = 0) -> Alteration:
    """The inputs or outputs of an operator."""
    return lambda model, graph: setattr(graph.operators[operator], side, np.array(values, np.int32))


def ends(side: str, values: Sequence[int]) -> Alteration:
    """The inputs or outputs of the graph."""
    return lambda model, graph: setattr(graph, side, np.array(values, np.int32))


def tensor(name: str, /, **fields: Any) -> Alteration:
    """Fields of a tensor; `shape`, `scale` and `zeroPoint` are lists, `type` the schema's word. No shape: None."""

    def change(model: Any, graph: Any) -> None:
        (found,) = [entry for entry in graph.tensors if entry.name == name.encode()]
        for field, value in fields.items():
            if field == "scale":
                found.quantization = found.quantization or schema.QuantizationParametersT()
                found.quantization.scale = np.array(value, np.float32)
                found.quantization.zeroPoint = np.zeros(len(value), np.int64)
            elif field == "zeroPoint":
                found.quantization.zeroPoint = np.array(value, np.int64)
            elif field == "axis":
                found.quantization.quantizedDimension = value
            elif field == "type":
                found.type = getattr(schema.TensorType, value)
            elif field in ("shape", "shapeSignature"):
                setattr(found, field, None if value is None else np.array(value, np.int32))
            else:
                assert hasattr(found, field), field
                setattr(found, field, value)

    return change


def constant(name: str, values: Any, dtype: str = "int32") -> Alteration:
    """Other values for a constant, and its shape."""

    def change(model: Any, graph: Any) -> None:
        (found,) = [entry for entry in graph.tensors if entry.name == name.encode()]
        array = np.array(values, dtype)
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.frombuffer(array.tobytes(), np.uint8)
        found.buffer, found.shape = len(model.buffers) - 1, np.array(array.shape, np.int32)

    return change


def sparse(name: str) -> Alteration:
    return tensor(name, sparsity=schema.SparsityParametersT())


def computed(name: str) -> Alteration:
    """A constant becomes an input of the graph."""

    def change(model: Any, graph: Any) -> None:
        (index,) = [at for at, entry in enumerate(graph.tensors) if entry.name == name.encode()]
        graph.tensors[index].buffer = 0
        graph.inputs = np.append(graph.inputs, index).astype(np.int32)

    return change


# ---- sound models to alter; tensors are numbered as they are made --------------------------------------------------


def _quantized(dtype: str) -> tuple[float, int] | tuple[None, int]:
    return (None, 0) if dtype == "float32" else (0.5, 3)


def conv(dtype: str = "int8") -> bytes:
    """x (1, 6, 6, 4), w (8, 3, 3, 4), b (8,) -> y (1, 6, 6, 8)."""
    b, whole = ModelBuilder(), dtype != "float32"
    x = b.input("x", (1, 6, 6, 4), dtype, *_quantized(dtype))
    w = b.constant("w", np.ones((8, 3, 3, 4), dtype), 0.25 if whole else None)
    bias = b.constant("b", np.zeros(8, np.int32 if whole else np.float32), 0.125 if whole else None)
    y = b.tensor("y", (1, 6, 6, 8), dtype, *_quantized(dtype))
    b.operator("CONV_2D", [x, w, bias], [y], "Conv2DOptions", {"strideH": 1, "strideW": 1})
    b.output(y)
    return b.build()


def depthwise() -> bytes:
    """x (1, 6, 6, 4), w (1, 3, 3, 4), b (4,) -> y (1, 6, 6, 4)."""
    b = ModelBuilder()
    x = b.input("x", (1, 6, 6, 4), "int8", 0.5, 3)
    w = b.constant("w", np.ones((1, 3, 3, 4), np.int8), [0.25] * 4, axis=3)
    bias = b.constant("b", np.zeros(4, np.int32), [0.125] * 4)
    y = b.tensor("y", (1, 6, 6, 4), "int8", 0.5, 3)
    b.operator(
        "DEPTHWISE_CONV_2D",
        [x, w, bias],
        [y],
        "DepthwiseConv2DOptions",
        {"strideH": 1, "strideW": 1, "depthMultiplier": 1},
    )
    b.output(y)
    return b.build()


def dense(dtype: str = "int8") -> bytes:
    """x (2, 12), w (5, 12), b (5,) -> y (2, 5)."""
    b, whole = ModelBuilder(), dtype != "float32"
    x = b.input("x", (2, 12), dtype, *_quantized(dtype))
    w = b.constant("w", np.ones((5, 12), dtype), 0.25 if whole else None)
    bias = b.constant("b", np.zeros(5, np.int32 if whole else np.float32), 0.125 if whole else None)
    y = b.tensor("y", (2, 5), dtype, *_quantized(dtype))
    b.operator("FULLY_CONNECTED", [x, w, bias], [y], "FullyConnectedOptions")
    b.output(y)
    return b.build()


def pool(op: str = "AVERAGE_POOL_2D", dtype: str = "int8") -> bytes:
    """x (1, 4, 4, 3) -> y (1, 2, 2, 3)."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 3), dtype, *_quantized(dtype))
    y = b.tensor("y", (1, 2, 2, 3), dtype, *_quantized(dtype))
    fields = {"filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2}
    b.operator(op, [x], [y], "Pool2DOptions", fields)
    b.output(y)
    return b.build()


def unary(op: str, table: str = "", fields: dict[str, Any] | None = None, dtype: str = "float32") -> bytes:
    """x (1, 4, 4, 3) -> y of the same shape."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 3), dtype, *_quantized(dtype))
    y = b.tensor("y", (1, 4, 4, 3), dtype, *_quantized(dtype))
    b.operator(op, [x], [y], table, fields)
    b.output(y)
    return b.build()


def dequantized() -> bytes:
    """x (1, 4) int8 -> y float32."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4), "int8", 0.5, 3), b.tensor("y", (1, 4), "float32")
    b.operator("DEQUANTIZE", [x], [y], "DequantizeOptions")
    b.output(y)
    return b.build()


def binary(op: str, table: str = "", dtype: str = "int8") -> bytes:
    """x (1, 4, 4, 3), z (3,) -> y (1, 4, 4, 3)."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 3), dtype, *_quantized(dtype))
    z = b.input("z", (3,), dtype, *_quantized(dtype))
    y = b.tensor("y", (1, 4, 4, 3), dtype, *_quantized(dtype))
    b.operator(op, [x, z], [y], table)
    b.output(y)
    return b.build()


def indexed(
    op: str, out: Sequence[int], numbers: Sequence[Any], table: str = "", fields: dict[str, Any] | None = None
) -> bytes:
    """x (1, 4, 4, 4) float32 with int32 constants n0, n1, ... -> y; SPLIT reads its axis first."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 4), "float32")
    constants: list[Tensor | None] = [b.constant(f"n{at}", np.array(v, np.int32)) for at, v in enumerate(numbers)]
    y = b.tensor("y", out, "float32")
    b.operator(op, [*constants, x] if op == "SPLIT" else [x, *constants], [y], table, fields)
    b.output(y)
    return b.build()


def joined() -> bytes:
    """x (1, 4, 3), z (1, 4, 2) -> y (1, 4, 5)."""
    b = ModelBuilder()
    x, z = b.input("x", (1, 4, 3), "int8", 0.5, 3), b.input("z", (1, 4, 2), "int8", 0.5, 3)
    y = b.tensor("y", (1, 4, 5), "int8", 0.5, 3)
    b.operator("CONCATENATION", [x, z], [y], "ConcatenationOptions", {"axis": 2})
    b.output(y)
    return b.build()


def chain() -> bytes:
    """x (0) -> TANH -> a (1) -> NEG -> y (2), float32 (1, 4)."""
    b = ModelBuilder()
    x, a, y = b.input("x", (1, 4), "float32"), b.tensor("a", (1, 4), "float32"), b.tensor("y", (1, 4), "float32")
    b.operator("TANH", [x], [a])
    b.operator("NEG", [a], [y])
    b.output(y)
    return b.build()
