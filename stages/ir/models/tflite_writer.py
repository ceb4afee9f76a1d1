"""Write TFLite files tensor by tensor and operator by operator.

Equal calls give equal bytes. The format is the published schema (`schema.fbs`, version 3), through the object
API of ai-edge-litert. `stages.ir.models.builder.ModelBuilder` builds on it and knows the operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.ir.model_info import FileTensor
from stages.ir.operators.declaration import CUSTOM
from stages.ir.packed import limits, narrowed

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "uint32", "uint64", "float32", "bool", "int4", "int2")
SCHEMA_VERSION = 3
CONSTANT_ALIGNMENT = 16  # bytes; `force_align` of Buffer.data in the schema, which Python's generated code ignores


_MOST_ELEMENTS = 2**31 - 1  # of a tensor; sizes have 32 bits in the file

# Bits of types with several elements in a byte, first in the lowest bits.
_NARROW = {"int4": 4, "int2": 2}


Tensor = FileTensor


class BuildError(ValueError):
    """Shapes, types or options that contradict each other."""


@dataclass(frozen=True)
class _Operator:
    code: int
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: str
    fields: Mapping[str, Any]
    custom: tuple[str, bytes] = ("", b"")
    intermediates: tuple[int, ...] = ()


class TFLiteWriter:
    """Collects tensors and operators of one graph and writes them as a TFLite file."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self._tensors: list[Tensor] = []
        self._operators: list[_Operator] = []
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._names: set[str] = set()

    @property
    def operators(self) -> int:
        """Number of operators so far."""
        return len(self._operators)

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        scale: float | Sequence[float] | npt.NDArray[Any] | None = None,
        zero_point: int | Sequence[int] | npt.NDArray[Any] = 0,
        *,
        axis: int = 0,
        constant: npt.NDArray[Any] | None = None,
        variable: bool = False,
    ) -> Tensor:
        """Declare a tensor. A name in use gets a number appended (`conv`, `conv_1`, ...)."""
        if dtype not in DTYPES:
            raise BuildError(f"tensor {name}: dtype {dtype!r} is none of {', '.join(DTYPES)}")
        shape = tuple(int(size) for size in shape)
        if any(size <= 0 for size in shape):
            raise BuildError(f"tensor {name}: shape {shape} has a size below 1")
        if any(size > _MOST_ELEMENTS for size in shape) or prod(shape) > _MOST_ELEMENTS:
            raise BuildError(f"tensor {name}: shape {shape} has more than {_MOST_ELEMENTS:,} elements")
        scales: tuple[float, ...] = ()
        zero_points: tuple[int, ...] = ()
        if scale is not None:
            scales = tuple(float(value) for value in np.atleast_1d(np.asarray(scale, dtype=np.float32)))
            points = np.atleast_1d(np.asarray(zero_point))
            zero_points = tuple(int(value) for value in np.broadcast_to(points, (len(scales),)))
            if not all(value > 0 and np.isfinite(value) for value in scales):
                raise BuildError(f"tensor {name}: each scale must be a positive float32, got {min(scales)}")
            if len(scales) > 1 and len(scales) != shape[axis]:
                raise BuildError(f"tensor {name}: {len(scales)} scales for {shape[axis]} channels (axis {axis})")
            if dtype in ("int8", "uint8", "int16", *_NARROW):
                low, high = _limits(dtype)
                if not all(low <= value <= high for value in zero_points):
                    raise BuildError(f"tensor {name}: zero point {zero_points} is outside {dtype}")
        unique, count = name, 0
        while unique in self._names:
            count += 1
            unique = f"{name}_{count}"
        self._names.add(unique)
        axis = axis if len(scales) > 1 else 0  # readers refuse an axis on per-tensor quantization
        tensor = Tensor(len(self._tensors), unique, shape, dtype, scales, zero_points, axis, constant, variable)
        self._tensors.append(tensor)
        return tensor

    def constant(
        self,
        name: str,
        values: npt.NDArray[Any],
        scale: float | Sequence[float] | npt.NDArray[Any] | None = None,
        zero_point: int | Sequence[int] | npt.NDArray[Any] = 0,
        *,
        axis: int = 0,
        dtype: str = "",
    ) -> Tensor:
        """Declare a constant with the shape of `values`, and their dtype or `dtype`.

        Raises BuildError for values beyond a sub-byte type.
        """
        values = np.asarray(values, order="C")
        dtype = dtype or str(values.dtype)
        if dtype in _NARROW and values.size:
            low, high = _limits(dtype)
            if values.min() < low or values.max() > high:
                raise BuildError(
                    f"constant {name}: {dtype} holds {low} to {high}, not {values.min()} to {values.max()}"
                )
        return self.tensor(name, values.shape, dtype, scale, zero_point, axis=axis, constant=values)

    def input(
        self, name: str, shape: Sequence[int], dtype: str, scale: float | None = None, zero_point: int = 0
    ) -> Tensor:
        """Declare a graph input."""
        tensor = self.tensor(name, shape, dtype, scale, zero_point)
        self._inputs.append(tensor.index)
        return tensor

    def variable(
        self, name: str, shape: Sequence[int], dtype: str, scale: float | None = None, zero_point: int = 0
    ) -> Tensor:
        """Declare a tensor with the state of an operator."""
        return self.tensor(name, shape, dtype, scale, zero_point, variable=True)

    def output(self, *tensors: Tensor) -> None:
        """Mark graph outputs, in this order."""
        self._outputs += [tensor.index for tensor in tensors]

    def operator(
        self,
        op: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        options: str = "",
        fields: Mapping[str, Any] | None = None,
        *,
        version: int = 1,
        custom: bytes = b"",
        intermediates: Sequence[Tensor] = (),
    ) -> None:
        """Append an operator of the schema.

        op             name in the schema's BuiltinOperator ("CONV_2D"); "CUSTOM:" and the code of a custom operator
        inputs         None is an absent optional input (index -1)
        options        name of the options table ("Conv2DOptions"); fields are its members (`strideH`, ...)
        custom         options of a custom operator, often a flexbuffer
        intermediates  tensors with the quantization of an LSTM's intermediate results
        """
        from ai_edge_litert import schema_py_generated as schema

        code = getattr(schema.BuiltinOperator, "CUSTOM" if op.startswith(CUSTOM) else op, None)
        if code is None:
            raise BuildError(f"{op!r} is not one of TFLite's builtin operators")
        if options and not hasattr(schema, f"{options}T"):
            raise BuildError(f"{options!r} is not one of TFLite's options tables")
        indices = tuple(-1 if tensor is None else tensor.index for tensor in inputs)
        self._operators.append(
            _Operator(
                code,
                version,
                indices,
                tuple(tensor.index for tensor in outputs),
                options,
                dict(fields or {}),
                (op.removeprefix(CUSTOM) if op.startswith(CUSTOM) else "", custom),
                tuple(tensor.index for tensor in intermediates),
            )
        )

    def build(self) -> bytes:
        """Return the file, with equal constants once; buffer 0 is empty, as the schema demands."""
        from ai_edge_litert import schema_py_generated as schema

        if not self._inputs or not self._outputs:
            raise BuildError("a model needs at least one input and one output")
        known: dict[bytes, int] = {}
        tensors = [_tensor_table(schema, tensor, known) for tensor in self._tensors]

        codes = sorted({(op.code, op.version, op.custom[0]) for op in self._operators})
        graph = schema.SubGraphT(
            name=self.name,
            tensors=tensors,
            inputs=int32_array(self._inputs),
            outputs=int32_array(self._outputs),
            operators=[_operator_table(schema, op, codes) for op in self._operators],
        )
        operator_codes = [
            # Codes above 127 do not fit the field of old readers: 127 is a placeholder.
            schema.OperatorCodeT(
                builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version, customCode=custom or None
            )
            for code, version, custom in codes
        ]
        return finished(operator_codes, graph, list(known))


def finished(codes: list[Any], graph: Any, constants: Sequence[bytes], **fields: Any) -> bytes:
    """Return the file of one graph (`SubGraphT`).

    constants  buffers 1 and up; tensors refer to them by number, 0 for none
    fields     other fields of the schema's `ModelT`
    """
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT(
        version=SCHEMA_VERSION,
        description="Firmline",
        operatorCodes=codes,
        subgraphs=[graph],
        buffers=[schema.BufferT(), *(aligned_buffer(schema, data) for data in constants)],
        **fields,
    )
    builder = flatbuffers.Builder(sum(map(len, constants)) + 65536)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _limits(dtype: str) -> tuple[int, int]:
    if dtype in _NARROW:
        return limits(_NARROW[dtype])
    kind = np.iinfo(dtype)
    return int(kind.min), int(kind.max)


def int32_array(values: Any) -> npt.NDArray[np.int32]:
    """Return integers as TFLite stores shapes and axes. Raises BuildError beyond 32 bits."""
    try:
        return np.asarray(values, dtype=np.int32)
    except OverflowError:
        raise BuildError(f"{list(np.reshape(values, -1))} does not fit into 32 bits") from None


def _tensor_table(schema: Any, tensor: Tensor, known: dict[bytes, int]) -> Any:
    """Return the schema's Tensor.

    Its constant is added to `known` (data -> buffer number) unless an equal one is there.
    """
    table = schema.TensorT(
        name=tensor.name,
        shape=int32_array(tensor.shape),
        type=getattr(schema.TensorType, tensor.dtype.upper()),
        hasRank=True,
        isVariable=tensor.variable,
    )
    if tensor.constant is not None:
        if tensor.dtype in _NARROW:
            data = narrowed(tensor.constant, _NARROW[tensor.dtype]).tobytes()
        else:
            data = tensor.constant.astype(tensor.constant.dtype.newbyteorder("<"), copy=False).tobytes()
        table.buffer = known.setdefault(data, len(known) + 1)
    if tensor.scale:
        table.quantization = schema.QuantizationParametersT(
            scale=np.asarray(tensor.scale, dtype=np.float32),
            zeroPoint=np.asarray(tensor.zero_point, dtype=np.int64),
            quantizedDimension=tensor.axis,
        )
    return table


def _operator_table(schema: Any, op: _Operator, codes: list[tuple[int, int, str]]) -> Any:
    name, custom = op.custom
    table = schema.OperatorT(
        opcodeIndex=codes.index((op.code, op.version, name)),
        inputs=int32_array(op.inputs),
        outputs=int32_array(op.outputs),
    )
    if op.intermediates:
        table.intermediates = int32_array(op.intermediates)
    if custom:
        table.customOptions = np.frombuffer(custom, np.uint8)
    if op.options:
        options = getattr(schema, f"{op.options}T")()
        for name, value in op.fields.items():
            if not hasattr(options, name):
                raise BuildError(f"{op.options} has no field {name!r}")
            setattr(options, name, value)
        table.builtinOptionsType = getattr(schema.BuiltinOptions, op.options)
        table.builtinOptions = options
    return table


def aligned_buffer(schema: Any, data: bytes) -> Any:
    """Return a Buffer whose data is aligned to CONSTANT_ALIGNMENT in the file."""

    class AlignedBuffer(schema.BufferT):  # type: ignore[misc]
        def Pack(self, builder: Any) -> int:
            builder.StartVector(1, len(data), CONSTANT_ALIGNMENT)
            head = builder.Head() - len(data)
            builder.head = head
            builder.Bytes[head : head + len(data)] = data
            vector = builder.EndVector()
            schema.BufferStart(builder)
            schema.BufferAddData(builder, vector)
            return int(schema.BufferEnd(builder))

    return AlignedBuffer()
