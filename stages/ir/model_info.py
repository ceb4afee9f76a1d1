"""The content of a TFLite file as plain data: tensors, operators and their options.

`stages.ir.models.tflite_reader` reads it, `stages.ir.models.tflite_writer` writes files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from stages.ir.packed import widened
from stages.support.lazy import np, npt

# Name and bits of an element by the schema's TensorType; 0 bits: no fixed size.
TYPES = {
    0: ("float32", 32),
    1: ("float16", 16),
    2: ("int32", 32),
    3: ("uint8", 8),
    4: ("int64", 64),
    5: ("string", 0),
    6: ("bool", 8),
    7: ("int16", 16),
    8: ("complex64", 64),
    9: ("int8", 8),
    10: ("float64", 64),
    11: ("complex128", 128),
    12: ("uint64", 64),
    13: ("resource", 0),
    14: ("variant", 0),
    15: ("uint32", 32),
    16: ("uint16", 16),
    17: ("int4", 4),
    18: ("bfloat16", 16),
    19: ("int2", 2),
    20: ("uint4", 4),
    21: ("float8_e4m3fn", 8),
    22: ("float8_e5m2", 8),
}


_WIDTHS = dict(TYPES.values())
# Types with several elements in a byte (first in the lowest bits), and the types that hold their values.
WIDENED = {"int4": "int8", "int2": "int8", "uint4": "uint8"}


@dataclass(frozen=True)
class Options:
    """An options table of the schema ("Conv2DOptions") and its fields.

    Fields that the file omits have their defaults. Unknown tables have no fields.
    """

    table: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TensorInfo:
    """A tensor of the file. `scale` and `zero_point` are empty if it is not quantized.

    data       bytes of a constant, None for run-time values
    dynamic    a size is unknown (-1)
    misplaced  the file gives its scales an axis that the tensor does not have; `axis` is the only possible one
    sparse     its data omit zeros
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
    misplaced: bool = False
    sparse: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of a tensor of its shape; elements without a fixed size count as one byte."""
        return -(-prod(self.shape) * (_WIDTHS[self.dtype] or 8) // 8)

    def values(self) -> npt.NDArray[Any]:
        """Return the constant as an array; sub-byte integers as int8 or uint8."""
        if self.data is None:
            raise ValueError(f"tensor {self.name} is not a constant")
        if self.dtype in WIDENED:
            memory = np.frombuffer(self.data, np.uint8)
            wide = widened(memory, _WIDTHS[self.dtype], WIDENED[self.dtype])
            return wide[: prod(self.shape)].reshape(self.shape)
        if not self.data:
            return np.empty(self.shape, self.dtype)
        return np.frombuffer(self.data, dtype=np.dtype(self.dtype).newbyteorder("<")).reshape(self.shape)


@dataclass(frozen=True)
class OperatorInfo:
    """An operator of the file.

    op             name in the schema ("CONV_2D"), "CUSTOM:<name>" for a custom operator
    inputs         tensor numbers, -1 if absent
    options        None if the file has no options table for it
    custom         option bytes of a custom operator
    intermediates  tensors whose quantization is that of intermediate results
    """

    index: int
    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Options | None = None
    custom: bytes = b""
    intermediates: tuple[int, ...] = ()


@dataclass(frozen=True)
class ModelInfo:
    """A graph of a TFLite file. `inputs` omits constants that the file lists among its inputs."""

    tensors: tuple[TensorInfo, ...]
    operators: tuple[OperatorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class FileTensor:
    """A tensor of a file under construction.

    index       its number in the file
    scale       one value, or one per channel along `axis`, rounded to float32; empty if not quantized
    zero_point  as many values as `scale`
    constant    values of a constant; sub-byte types as int8
    variable    its values persist between inferences
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis: int = 0
    constant: npt.NDArray[Any] | None = None
    variable: bool = False
