"""Read untrusted TFLite files: every offset and index is checked before it is used.

LiteRT and TVM's front end assume a valid file. On others they fail with obscure errors or crash. `read` runs before
them and reports the fault. Field numbers are from TensorFlow Lite's `schema.fbs`, version 3.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.ir.model_info import TYPES, ModelInfo, OperatorInfo, TensorInfo
from stages.ir.models.flatbuffer import Corrupt, Table
from stages.ir.models.operator_options import read_options
from stages.ir.models.other_files import FILE, advice
from stages.ir.operators.declaration import CUSTOM
from stages.support.messages import escape
from stages.support.messages.operator_error import operator_label
from stages.support.messages.stage_error import StageError

_MOST_AXES = 32  # no operator takes as many


def read(data: bytes, name: str = "model", subgraph: int = 0) -> ModelInfo:
    """Check and read a graph of a TFLite file.

    Raises StageError, naming the file as `name`, for an invalid file.
    """
    with opened(data, name) as model:
        check_not_compiled((table.string(1) for table in model.tables(1, "operator code")), name)
        info = _graph(model, subgraph)
        _check_unused(model)
        return info


@contextmanager
def opened(data: bytes, name: str) -> Iterator[Table]:
    """Yield the root table of the model.

    Raises StageError for other files, and for Corrupt errors inside the block.
    """
    if len(data) < 8 or data[4:8] != b"TFL3":
        what = "is empty" if not data else "is not a TFLite file (no TFL3 identifier)"
        raise StageError(f"{name} {what}, {len(data)} bytes", hint=advice(data, wanted="tflite"), at=FILE)
    try:
        model = Table.root(memoryview(data))
        version = model.scalar(0, "<I")
        if version != 3:
            raise Corrupt(f"schema version {version}, expected 3")
        yield model
    except Corrupt as error:
        raise StageError(
            f"{name} is a corrupt or truncated TFLite file ({len(data)} bytes): {error}",
            hint="Export or download it again.",
            at=FILE,
        ) from None


def _check_unused(model: Table) -> None:
    """Raise Corrupt for damage in unused parts.

    LiteRT reads everything, and does not report where a fault is.
    """
    model.string(3)
    model.numbers(5, "<i4")
    for entry in model.tables(6, "metadata"):
        entry.string(0)
    for signature in model.tables(7, "signature"):
        signature.string(2)
        for side in (0, 1):
            for port in signature.tables(side, f"an end of {signature.what}"):
                port.string(0)
    for code in model.tables(1, "operator code"):
        code.string(1)
    for graph in subgraphs(model):
        graph.string(4)
        for operator in graph.tables(3, "operator"):
            operator.raw(5)
            operator.raw(7)
            operator.numbers(8, "<i4")
        for tensor in graph.tables(0, "tensor"):
            quantization = tensor.table(4, f"quantization of {tensor.what}")
            if quantization is not None:
                quantization.numbers(0, "<f4")
                quantization.numbers(1, "<f4")


def subgraphs(model: Table) -> list[Table]:
    """Return the model's graphs, at least one."""
    graphs = model.tables(2, "subgraph")
    if not graphs:
        raise Corrupt("it has no subgraph")
    return graphs


def buffers(model: Table) -> list[memoryview]:
    """Return the bytes of each buffer; those of run-time tensors are empty."""
    return [_buffer(table) for table in model.tables(4, "buffer")]


def _graph(model: Table, subgraph: int) -> ModelInfo:
    codes = [_operator_name(table) for table in model.tables(1, "operator code")]
    stored = buffers(model)
    graphs = subgraphs(model)
    if not 0 <= subgraph < len(graphs):
        raise Corrupt(f"subgraph {subgraph} of {len(graphs)}")
    graph = graphs[subgraph]
    tensors = tuple(_tensor(index, table, stored) for index, table in enumerate(graph.tables(0, "tensor")))
    operators = tuple(_operator(i, table, codes, len(tensors)) for i, table in enumerate(graph.tables(3, "operator")))
    inputs = _indices(graph.numbers(1, "<i4"), len(tensors), "the graph's inputs")
    outputs = _indices(graph.numbers(2, "<i4"), len(tensors), "the graph's outputs")
    computed = {index for operator in operators for index in operator.outputs} | set(inputs)
    tensors = tuple(tensor if tensor.index in computed else _without_elements(tensor) for tensor in tensors)
    check_order(ModelInfo(tensors, operators, inputs, outputs))
    real = tuple(index for index in inputs if tensors[index].data is None)
    return ModelInfo(tensors, operators, real, outputs)


def _without_elements(tensor: TensorInfo) -> TensorInfo:
    """Return the tensor as a constant if it has no elements.

    Its buffer is empty, like that of run-time tensors.
    """
    return replace(tensor, data=memoryview(b"")) if tensor.data is None and 0 in tensor.shape else tensor


def _operator_name(table: Table) -> str:
    # The first field is a signed byte; codes above 127 are in the fourth. The larger one counts.
    code = max(table.scalar(0, "<b"), table.scalar(3, "<i"))
    name = builtin_name(code)
    if not name:
        raise Corrupt(f"{table.what} is {code}, which no operator has")
    return f"{CUSTOM}{escape.name(table.string(1))}" if name == "CUSTOM" else name


def builtin_name(code: int) -> str:
    """Return the schema's name of a builtin operator, '' for an unknown number."""
    return _builtin_names().get(code, "")


@cache
def _builtin_names() -> dict[int, str]:
    from ai_edge_litert.schema_py_generated import BuiltinOperator

    return {code: name for name, code in vars(BuiltinOperator).items() if isinstance(code, int)}


def _buffer(table: Table) -> memoryview:
    """Return the buffer's bytes.

    Files above 2 GB store them after the flatbuffer, at `offset` from the start of the file.
    """
    offset, size = table.scalar(1, "<Q"), table.scalar(2, "<Q")
    if offset > 1:
        if offset + size > len(table.data):
            raise Corrupt(f"{table.what} ends beyond the file")
        return table.data[offset : offset + size]
    return table.raw(0)


def _tensor(index: int, table: Table, buffers: list[memoryview]) -> TensorInfo:
    name = table.string(3) or f"tensor {index}"
    shape = tuple(int(size) for size in table.numbers(0, "<i4"))
    called = f"tensor {index} ({escape.name(name)})"
    code = table.scalar(1, "<b")
    if code not in TYPES:
        raise Corrupt(f"{called} has the unknown type {code}")
    dtype, width = TYPES[code]
    if len(shape) > _MOST_AXES:
        raise Corrupt(f"{called} has {len(shape)} axes")
    signature = table.numbers(7, "<i4")
    dynamic = any(size < 0 for size in shape) or any(size < 0 for size in signature)
    number = table.scalar(2, "<I")
    if number >= len(buffers):
        raise Corrupt(f"{called} refers to buffer {number} of {len(buffers)}")
    data = buffers[number] if len(buffers[number]) else None
    sparse = table.has(6)
    expected = -(-width * int(np.prod(shape, dtype=object)) // 8)
    if data is not None and width and not sparse and len(data) != expected:
        raise Corrupt(f"{called} of {dtype}{list(shape)} needs {expected} bytes and has {len(data)}")
    scale, zero_point, axis, misplaced = np.empty(0, np.float32), np.empty(0, np.int64), 0, False
    quantization = table.table(4, f"quantization of tensor {index}")
    if quantization is not None and quantization.numbers(2, "<f4").size:
        scale, zero_point = quantization.numbers(2, "<f4"), quantization.numbers(3, "<i8")
        axis = quantization.scalar(6, "<i")
        if zero_point.size == 0:
            zero_point = np.zeros(scale.size, np.int64)
        if scale.size != zero_point.size:
            raise Corrupt(f"{called} has {scale.size} scales and {zero_point.size} zero points")
        wrong = scale[~(np.isfinite(scale) & (scale >= 0))]
        if wrong.size:
            raise Corrupt(f"{called} has the scale {wrong[0]:g}")
        misplaced = axis < 0 or 0 < len(shape) <= axis
        if misplaced and (scale.size == 1 or len(shape) == 1):
            axis = 0  # the only one that it can be
        if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
            raise Corrupt(f"{called} has {scale.size} scales on axis {axis} of {list(shape)}")
    variable = bool(table.scalar(5, "<b"))
    return TensorInfo(index, name, shape, dtype, scale, zero_point, axis, data, variable, dynamic, misplaced, sparse)


def _operator(index: int, table: Table, codes: list[str], tensors: int) -> OperatorInfo:
    code = table.scalar(0, "<I")
    if code >= len(codes):
        raise Corrupt(f"operator {index} refers to operator code {code} of {len(codes)}")
    subject = operator_label(index, codes[code])
    options = read_options(table, codes[code], f"the options of {subject}")
    inputs = _indices(table.numbers(1, "<i4"), tensors, f"the inputs of {subject}", optional=True)
    outputs = _indices(table.numbers(2, "<i4"), tensors, f"the outputs of {subject}")
    custom = bytes(table.raw(5)) if codes[code].startswith(CUSTOM) else b""
    intermediates = _indices(table.numbers(8, "<i4"), tensors, f"the intermediates of {subject}")
    return OperatorInfo(index, codes[code], inputs, outputs, options, custom, intermediates)


def _indices(values: npt.NDArray[Any], count: int, what: str, *, optional: bool = False) -> tuple[int, ...]:
    low = -1 if optional else 0
    for value in values:
        if not low <= value < count:
            raise Corrupt(f"tensor {value} of {count} among {what}")
    return tuple(int(value) for value in values)


# Prefix of the custom operator's code -> compiler that wrote it.
_COMPILERS = {
    "ethos-u": "Arm's Vela, for an Ethos-U NPU",
    "edgetpu-custom-op": "Google's edgetpu_compiler, for an Edge TPU",
    "XC_": "XMOS' xcore optimizer, for an xcore.ai",
    "NeutronGraph": "NXP's Neutron converter, for an eIQ Neutron NPU",
    "DISPATCH_OP": "LiteRT's compiler, for the NPU of a phone",
    "vsi-npu": "VeriSilicon's tools, for a VIP NPU",
    "tidl-": "TI's TIDL tools, for a C7x",
}


def check_not_compiled(codes: Iterable[str], name: str) -> None:
    """Raise StageError if a custom operator of the file is a compiler's machine code.

    name  file in the message
    """
    for code in codes:
        compiler = next((what for start, what in _COMPILERS.items() if code.startswith(start)), "")
        if compiler:
            raise StageError(
                f"{name} was compiled by {compiler} (custom operator {escape.quoted(code)})",
                hint="Its layers are machine code. Use the .tflite file from before that compilation.",
                at=FILE,
            )


def check_order(graph: ModelInfo) -> None:
    """Raise Corrupt unless every tensor has one source before it is read.

    A source is a constant, a variable, an input, or one operator. `graph.inputs` may name constants, as some exporters
    do; outputs may be listed twice, inputs not.
    """
    if graph.inputs and not graph.outputs:  # a graph of CALL_ONCE has neither
        raise Corrupt("the graph has no outputs")
    for index, times in Counter(graph.inputs).items():
        if times > 1 and graph.tensors[index].data is None:
            raise Corrupt(f"the graph lists its input {_named(graph, index)} twice")
    writers = {index: operator for operator in reversed(graph.operators) for index in operator.outputs}
    origins = dict.fromkeys(graph.inputs, "an input of the graph")
    origins |= {tensor.index: "a variable" for tensor in graph.tensors if tensor.variable}
    origins |= {tensor.index: "a constant" for tensor in graph.tensors if tensor.data is not None}
    for operator in graph.operators:
        for index in operator.inputs:
            if index >= 0 and index not in origins:
                later = f"{_called(writers[index])} writes later" if index in writers else "nothing writes"
                raise Corrupt(f"{_called(operator)} reads {_named(graph, index)}, which {later}")
        for index in operator.outputs:
            if index in origins:
                raise Corrupt(f"{_called(operator)} overwrites {_named(graph, index)}, {origins[index]}")
            origins[index] = f"a result of {_called(operator)}"
    for index in graph.outputs:
        if index not in origins:
            raise Corrupt(f"nothing computes the output {_named(graph, index)}")


def _called(operator: OperatorInfo) -> str:
    return operator_label(operator.index, operator.op)


def _named(graph: ModelInfo, index: int) -> str:
    return f"tensor {index} {escape.quoted(graph.tensors[index].name)}"
