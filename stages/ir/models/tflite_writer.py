"""TFLite files, written tensor by tensor and operator by operator; the same calls give the same bytes.

The layout is that of the published schema (`schema.fbs`, version 3), through the object API that ships with
ai-edge-litert. `stages.ir.models.builder.ModelBuilder` sits on top and knows the operators; this module knows only
tensors, constants, operators and the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.ir.graph.packed import limits, narrowed
from stages.ir.operators.declaration import CUSTOM

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "float32", "bool", "int4", "int2")
SCHEMA_VERSION = 3
CONSTANT_ALIGNMENT = 16  # bytes; `force_align` of Buffer.data in the schema, which Python's generated code ignores


_MOST_ELEMENTS = 2**31 - 1  # of one tensor; sizes have 32 bits in the file

# Types of which several lie in a byte, the first in its lowest bits.
_NARROW = {"int4": 4, "int2": 2}


class BuildError(ValueError):
    """A model that cannot be: shapes, types or options that contradict one another."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph under construction.

    index       its number in the file
    scale       one value, or one per channel along `axis`, as float32 will store it; empty when not quantized
    zero_point  as many values as `scale`
    constant    the values, when the tensor is a constant; those of narrow types as int8
    variable    it keeps its values from one inference to the next
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
    """Collects the tensors and operators of one subgraph and writes them as a TFLite file."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self._tensors: list[Tensor] = []
        self._operators: list[_Operator] = []
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._names: set[str] = set()

    @property
    def operators(self) -> int:
        """How many operators there are so far."""
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
        """Declares a tensor. A name already taken gets a number appended (`conv`, `conv_1`, ...)."""
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
        made = Tensor(len(self._tensors), unique, shape, dtype, scales, zero_points, axis, constant, variable)
        self._tensors.append(made)
        return made

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
        """Declares a constant tensor with the shape of `values` (weights, bias, axes, ...) and their dtype, or `dtype`.

        BuildError for values that a narrow type does not hold.
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
        """Declares a graph input."""
        made = self.tensor(name, shape, dtype, scale, zero_point)
        self._inputs.append(made.index)
        return made

    def variable(
        self, name: str, shape: Sequence[int], dtype: str, scale: float | None = None, zero_point: int = 0
    ) -> Tensor:
        """Declares a tensor that an operator keeps its state in."""
        return self.tensor(name, shape, dtype, scale, zero_point, variable=True)

    def output(self, *tensors: Tensor) -> None:
        """Marks graph outputs, in this order."""
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
        """Appends one operator; any of the schema's builtin operators, also ones without a method of their own.

        op       name in the schema's BuiltinOperator, for example "CONV_2D"; "CUSTOM:" and the code of a custom one
        custom   the options of a custom one, often a flexbuffer
        inputs   None stands for an absent optional input (index -1)
        intermediates   tensors that nobody computes, for the scales of what an LSTM has on the way
        options  name of the options table, for example "Conv2DOptions"; fields are its members (`strideH`, ...)
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
        """Returns the file. Identical constants are stored once; buffer 0 is empty, as the schema demands."""
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
            # Codes above 127 do not fit the field that old readers look at; they find this placeholder.
            schema.OperatorCodeT(
                builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version, customCode=custom or None
            )
            for code, version, custom in codes
        ]
        return finished(operator_codes, graph, list(known))


def finished(codes: list[Any], graph: Any, constants: Sequence[bytes], **fields: Any) -> bytes:
    """The file of one graph (`SubGraphT`) whose tensors have the numbers, from 1, of their `constants`, or 0.

    fields: others of the schema's `ModelT`.
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
    """Return integers as TFLite stores shapes, axes and amounts. Raises BuildError for those beyond 32 bits."""
    try:
        return np.asarray(values, dtype=np.int32)
    except OverflowError:
        raise BuildError(f"{list(np.reshape(values, -1))} does not fit into 32 bits") from None


def _tensor_table(schema: Any, tensor: Tensor, known: dict[bytes, int]) -> Any:
    """The schema's Tensor; its constant, if any, joins those `known` by their numbers, unless an equal one is there."""
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
    """A Buffer whose bytes start at a multiple of CONSTANT_ALIGNMENT from the start of the file."""

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
