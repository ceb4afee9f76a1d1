"""Reads a TFLite file without trusting it: every offset and index is checked before it is followed.

LiteRT and TVM's front end both assume a sound file; on a truncated or altered one they raise something obscure or end
the process. `read` comes first and says what is wrong in the user's words. Layout: FlatBuffers' binary format
(little-endian; a table starts with the signed distance to its vtable, which holds one 16-bit offset per field) and
the field numbers of TensorFlow Lite's `schema.fbs`, version 3.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.base import StageError

# Size in bytes of one element, by the schema's TensorType. Types below one byte and strings have no entry.
_TYPES = {
    0: ("float32", 4),
    1: ("float16", 2),
    2: ("int32", 4),
    3: ("uint8", 1),
    4: ("int64", 8),
    5: ("string", 0),
    6: ("bool", 1),
    7: ("int16", 2),
    8: ("complex64", 8),
    9: ("int8", 1),
    10: ("float64", 8),
    11: ("complex128", 16),
    12: ("uint64", 8),
    13: ("resource", 0),
    14: ("variant", 0),
    15: ("uint32", 4),
    16: ("uint16", 2),
    17: ("int4", 0),
    18: ("bfloat16", 2),
}


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the file. `scale` and `zero_point` are empty when it is not quantized.

    data is the constant's bytes, None for what is computed at run time; dynamic tells that a size is unknown (-1).
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: npt.NDArray[np.float32]
    zero_point: npt.NDArray[np.int64]
    axis: int
    data: memoryview | None
    variable: bool
    dynamic: bool

    def values(self) -> npt.NDArray[Any]:
        """The constant as an array."""
        if self.data is None:
            raise ValueError(f"tensor {self.name} is not a constant")
        return np.frombuffer(self.data, dtype=np.dtype(self.dtype).newbyteorder("<")).reshape(self.shape)


@dataclass(frozen=True)
class OperatorInfo:
    """One operator: its name in the schema ("CONV_2D"; a custom one: "CUSTOM:<name>"), tensor numbers, -1 if absent."""

    index: int
    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class ModelInfo:
    """The first subgraph of a TFLite file. `inputs` leaves out constants that a file lists among its inputs."""

    tensors: tuple[TensorInfo, ...]
    operators: tuple[OperatorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: int


class _Corrupt(Exception):
    pass


def read(data: bytes, name: str = "model") -> ModelInfo:
    """Checks and reads a TFLite file. Raises StageError, naming the file as `name`, when it is not a sound one."""
    if len(data) < 8 or data[4:8] != b"TFL3":
        what = "is empty" if not data else "is not a TFLite file (no TFL3 identifier)"
        raise StageError(f"{name} {what}, {len(data)} bytes", hint="Check that the download or export is complete.")
    try:
        return _model(_Table.root(memoryview(data)))
    except _Corrupt as error:
        raise StageError(
            f"{name} is a corrupt or truncated TFLite file ({len(data)} bytes): {error}",
            hint="Export or download it again.",
        ) from None


def shown(name: str) -> str:
    """A tensor's name as a message may show it: printable, and short (a damaged file's may be anything)."""
    name = "".join(letter if letter.isprintable() else "?" for letter in name)
    return name if len(name) <= 80 else f"{name[:38]} ... {name[-37:]}"


class _Table:
    """A FlatBuffers table whose vtable and fields lie inside the file."""

    def __init__(self, data: memoryview, position: int, what: str) -> None:
        self.data, self.position, self.what = data, position, what
        vtable = position - self._unpack("<i", position)
        self.fields = self._unpack("<H", vtable)
        self.size = self._unpack("<H", vtable + 2)
        if self.fields < 4 or self.fields % 2 or vtable + self.fields > len(data):
            raise _Corrupt(f"bad table in {what}")
        if position + self.size > len(data):
            raise _Corrupt(f"{what} ends beyond the file")
        self.vtable = vtable

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0], "the model")

    def _unpack(self, form: str, position: int) -> Any:
        if position < 0 or position + struct.calcsize(form) > len(self.data):
            raise _Corrupt(f"{self.what} points beyond the file")
        return struct.unpack_from(form, self.data, position)[0]

    def _field(self, number: int, width: int = 1) -> int:
        """Position of a field, 0 if absent."""
        entry = 4 + 2 * number
        offset = self._unpack("<H", self.vtable + entry) if entry < self.fields else 0
        if offset and (offset < 4 or offset + width > self.size):
            raise _Corrupt(f"bad field {number} in {self.what}")
        return self.position + offset if offset else 0

    def scalar(self, number: int, form: str, default: int = 0) -> int:
        position = self._field(number, struct.calcsize(form))
        return int(self._unpack(form, position)) if position else default

    def table(self, number: int, what: str) -> _Table | None:
        position = self._field(number, 4)
        return _Table(self.data, position + self._unpack("<I", position), what) if position else None

    def _vector(self, number: int, width: int) -> tuple[int, int]:
        """Start and length of a vector; (0, 0) if absent."""
        position = self._field(number, 4)
        if not position:
            return 0, 0
        start = position + self._unpack("<I", position)
        length = self._unpack("<I", start)
        if start + 4 + length * width > len(self.data):
            raise _Corrupt(f"a list in {self.what} ends beyond the file")
        return start + 4, length

    def numbers(self, number: int, dtype: str) -> npt.NDArray[Any]:
        start, length = self._vector(number, np.dtype(dtype).itemsize)
        return np.frombuffer(self.data, dtype=dtype, count=length, offset=start if length else 0)

    def raw(self, number: int) -> memoryview:
        start, length = self._vector(number, 1)
        return self.data[start : start + length]

    def string(self, number: int) -> str:
        return bytes(self.raw(number)).decode("utf-8", errors="replace")

    def tables(self, number: int, what: str) -> list[_Table]:
        start, length = self._vector(number, 4)
        found = []
        for index in range(length):
            position = start + 4 * index
            found.append(_Table(self.data, position + self._unpack("<I", position), f"{what} {index}"))
        return found


def _model(model: _Table) -> ModelInfo:
    version = model.scalar(0, "<I")
    if version != 3:
        raise _Corrupt(f"schema version {version}, expected 3")
    codes = [_operator_name(table) for table in model.tables(1, "operator code")]
    buffers = [_buffer(table) for table in model.tables(4, "buffer")]
    subgraphs = model.tables(2, "subgraph")
    if not subgraphs:
        raise _Corrupt("it has no subgraph")
    graph = subgraphs[0]
    tensors = tuple(_tensor(index, table, buffers) for index, table in enumerate(graph.tables(0, "tensor")))
    operators = tuple(_operator(i, table, codes, len(tensors)) for i, table in enumerate(graph.tables(3, "operator")))
    inputs = _indices(graph.numbers(1, "<i4"), len(tensors), "the graph's inputs")
    outputs = _indices(graph.numbers(2, "<i4"), len(tensors), "the graph's outputs")
    if not outputs:
        raise _Corrupt("the graph has no outputs")
    _check_order(tensors, operators, inputs, outputs)
    real = tuple(index for index in inputs if tensors[index].data is None)
    return ModelInfo(tensors, operators, real, outputs, len(subgraphs))


def _operator_name(table: _Table) -> str:
    # The first field is a signed byte that ran out of numbers; newer codes are in the fourth, the larger one counts.
    code = max(table.scalar(0, "<b"), table.scalar(3, "<i"))
    name = _builtin_names().get(code)
    if name is None:
        raise _Corrupt(f"{table.what} is {code}, which no operator has")
    return f"CUSTOM:{shown(table.string(1))}" if name == "CUSTOM" else name


@cache
def _builtin_names() -> dict[int, str]:
    from ai_edge_litert.schema_py_generated import BuiltinOperator

    return {code: name for name, code in vars(BuiltinOperator).items() if isinstance(code, int)}


def _buffer(table: _Table) -> memoryview:
    """The buffer's bytes; files above 2 GB keep them after the flatbuffer, at `offset` from the start of the file."""
    offset, size = table.scalar(1, "<Q"), table.scalar(2, "<Q")
    if offset > 1:
        if offset + size > len(table.data):
            raise _Corrupt(f"{table.what} ends beyond the file")
        return table.data[offset : offset + size]
    return table.raw(0)


def _tensor(index: int, table: _Table, buffers: list[memoryview]) -> TensorInfo:
    name = table.string(3) or f"tensor {index}"
    shape = tuple(int(size) for size in table.numbers(0, "<i4"))
    code = table.scalar(1, "<b")
    if code not in _TYPES:
        raise _Corrupt(f"tensor {index} ({shown(name)}) has the unknown type {code}")
    dtype, width = _TYPES[code]
    signature = table.numbers(7, "<i4")
    dynamic = any(size < 0 for size in shape) or any(size < 0 for size in signature)
    number = table.scalar(2, "<I")
    if number >= len(buffers):
        raise _Corrupt(f"tensor {index} ({shown(name)}) refers to buffer {number} of {len(buffers)}")
    data = buffers[number] if len(buffers[number]) else None
    expected = width * int(np.prod(shape, dtype=object))
    if data is not None and width and not table._field(6) and len(data) != expected:
        raise _Corrupt(
            f"tensor {index} ({shown(name)}) of {dtype}{list(shape)} needs {expected} bytes and has {len(data)}"
        )
    scale, zero_point, axis = np.empty(0, np.float32), np.empty(0, np.int64), 0
    quantization = table.table(4, f"quantization of tensor {index}")
    if quantization is not None and quantization.numbers(2, "<f4").size:
        scale, zero_point = quantization.numbers(2, "<f4"), quantization.numbers(3, "<i8")
        axis = quantization.scalar(6, "<i")
        if zero_point.size == 0:
            zero_point = np.zeros(scale.size, np.int64)
        if scale.size != zero_point.size or not np.isfinite(scale).all() or scale.min() < 0:
            raise _Corrupt(f"tensor {index} ({shown(name)}) has an invalid quantization")
        if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
            raise _Corrupt(f"tensor {index} ({shown(name)}) has {scale.size} scales on axis {axis} of {list(shape)}")
    return TensorInfo(index, name, shape, dtype, scale, zero_point, axis, data, bool(table.scalar(5, "<b")), dynamic)


def _operator(index: int, table: _Table, codes: list[str], tensors: int) -> OperatorInfo:
    code = table.scalar(0, "<I")
    if code >= len(codes):
        raise _Corrupt(f"operator {index} refers to operator code {code} of {len(codes)}")
    table.table(4, f"options of operator {index}")
    inputs = _indices(
        table.numbers(1, "<i4"), tensors, f"the inputs of operator {index} ({codes[code]})", optional=True
    )
    outputs = _indices(table.numbers(2, "<i4"), tensors, f"the outputs of operator {index} ({codes[code]})")
    return OperatorInfo(index, codes[code], inputs, outputs)


def _indices(values: npt.NDArray[Any], count: int, what: str, *, optional: bool = False) -> tuple[int, ...]:
    low = -1 if optional else 0
    for value in values:
        if not low <= value < count:
            raise _Corrupt(f"tensor {value} of {count} among {what}")
    return tuple(int(value) for value in values)


def _check_order(
    tensors: tuple[TensorInfo, ...],
    operators: tuple[OperatorInfo, ...],
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
) -> None:
    """Every tensor is a constant, a variable, an input, or written exactly once, before it is read."""
    known = {tensor.index for tensor in tensors if tensor.data is not None or tensor.variable} | set(inputs)
    for operator in operators:
        for index in operator.inputs:
            if index >= 0 and index not in known and tensors[index].shape != (0,):
                raise _Corrupt(
                    f"operator {operator.index} ({operator.op}) reads {shown(tensors[index].name)}, written later"
                )
        for index in operator.outputs:
            if index in known:
                raise _Corrupt(f"operator {operator.index} ({operator.op}) overwrites {shown(tensors[index].name)}")
            known.add(index)
    missing = [shown(tensors[index].name) for index in outputs if index not in known]
    if missing:
        raise _Corrupt(f"nothing computes the output {missing[0]}")
