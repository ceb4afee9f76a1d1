"""Operators that join tensors, or split one."""

from collections.abc import Sequence
from functools import reduce
from typing import ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView, every_channel
from stages.ir.layers.channels import NEW, ValueRange, channels_of, labels
from stages.ir.model_info import FileTensor, TensorInfo
from stages.ir.naming import named
from stages.ir.operators.axes import axis_of
from stages.ir.operators.declaration import MANY, MOVED, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.movement import Move
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

_CONCATENATION = Table("ConcatenationOptions", "axis:int activation:byte")
_PACK = Table("PackOptions", "values_count:int axis:int")
_UNPACK = Table("UnpackOptions", "num:int axis:int")
_SPLIT = Table("SplitOptions", "num_splits:int")
_SPLIT_V = Table("SplitVOptions", "num_splits:int")


def _concatenation(operation: Operation) -> list[Shape]:
    first = operation.input(0)
    axis, total = axis_of(operation.options(_CONCATENATION)["axis"], first.shape), 0
    for position in range(len(operation.inputs)):
        part = operation.input(position)
        if len(part.shape) != len(first.shape) or _without(part.shape, axis) != _without(first.shape, axis):
            shapes = f"{named(first)} {listed(first.shape)} and {named(part)} {listed(part.shape)}"
            raise Refused(f"cannot join {shapes} along axis {axis}")
        total += part.shape[axis]
    return [(*first.shape[:axis], total, *first.shape[axis + 1 :])]


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _pack(operation: Operation) -> list[Shape]:
    first, options = operation.input(0), operation.options(_PACK)
    if options["values_count"] != len(operation.inputs):
        raise Refused(f"has {len(operation.inputs)} inputs, but its values_count is {options['values_count']}")
    for position in range(len(operation.inputs)):
        part = operation.input(position)
        if part.shape != first.shape:
            shapes = f"{named(first)} {listed(first.shape)} and {named(part)} {listed(part.shape)}"
            raise Refused(f"cannot stack {shapes}: they differ")
        if _scales(part) != _scales(first):
            raise Refused(f"stacks {named(first)} and {named(part)}, whose scales or zero points differ")
    axis = axis_of(options["axis"], first.shape, extra=1)
    return [(*first.shape[:axis], len(operation.inputs), *first.shape[axis:])]


def _scales(tensor: TensorInfo) -> tuple[list[float], list[int]]:
    return tensor.scale.tolist(), tensor.zero_point.tolist()


def _unpack(operation: Operation) -> list[Shape]:
    source, options = operation.input(0), operation.options(_UNPACK)
    axis = axis_of(options["axis"], source.shape)
    if not options["num"] == len(operation.outputs) == source.shape[axis]:
        parts = f"{options['num']} parts and {len(operation.outputs)} outputs"
        raise Refused(f"cannot unpack axis {axis} of {named(source)} {listed(source.shape)} into {parts}")
    return [_without(source.shape, axis)] * source.shape[axis]


def _split(operation: Operation) -> list[Shape]:
    source, parts = operation.input(1), _parts(operation, _SPLIT)
    axis = axis_of(operation.integers(0, "the axis", 1)[0], source.shape)
    if source.shape[axis] % parts:
        raise Refused(f"cannot split axis {axis} of {named(source)} {listed(source.shape)} into {parts} equal parts")
    return [_with(source.shape, axis, source.shape[axis] // parts)] * parts


def _split_v(operation: Operation) -> list[Shape]:
    source = operation.input(0)
    sizes = operation.integers(1, "the sizes", _parts(operation, _SPLIT_V))
    axis = axis_of(operation.integers(2, "the axis", 1)[0], source.shape)
    extent = source.shape[axis]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = extent - sum(sizes) - 1
    if min(sizes) < 1 or sum(sizes) != extent:
        raise Refused(f"cannot split axis {axis} of {named(source)} {listed(source.shape)} into {listed(sizes)}")
    return [_with(source.shape, axis, size) for size in sizes]


def _parts(operation: Operation, table: Table) -> int:
    parts: int = operation.options(table)["num_splits"]
    if parts != len(operation.outputs):
        raise Refused(f"has {len(operation.outputs)} outputs, but its num_splits is {parts}")
    return parts


def _with(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


class Concatenation(LayerOp):
    """Inputs concatenated along `axis` (logical); all have the output's quantization.

    With a state, the output is an alias of it: a sliding window that persists.
    """

    uniform: ClassVar[bool] = True
    shifts_alike: ClassVar[bool] = True
    op: Literal["concatenation"] = "concatenation"
    any_type: ClassVar[bool] = True
    axis: int

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """The inputs' ranges in order if channels are joined, else their union."""
        if self.axis % len(view.outputs[0].shape) == len(view.outputs[0].shape) - 1:
            return ValueRange(np.concatenate([x.least for x in inputs]), np.concatenate([x.most for x in inputs]))
        return reduce(ValueRange.joined, inputs)

    def carries(self, view: LayerView) -> tuple[Array, ...]:
        """Each output channel comes from one channel of one input, or of all."""
        if self.axis % len(view.outputs[0].shape) != len(view.outputs[0].shape) - 1:
            return every_channel(view)
        sizes = [channels_of(tensor) for tensor in view.inputs]
        first = np.cumsum([0, *sizes])
        channels = np.arange(first[-1])
        return tuple(
            np.where((channels >= start) & (channels < start + size), channels - start, NEW)
            for start, size in zip(first, sizes, strict=False)
        )

    def alike(self, view: LayerView, inputs: Sequence[Array]) -> Array | None:
        """If channels are joined, only labels of channels of the same tensor are comparable."""
        if self.axis % len(view.outputs[0].shape) != len(view.outputs[0].shape) - 1:
            return super().alike(view, inputs)
        names = view.layer.inputs
        tensors = [
            np.full(len(channel_labels), names.index(name)) for name, channel_labels in zip(names, inputs, strict=True)
        ]
        return labels(np.concatenate(tensors), np.concatenate(inputs))

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Concatenate the inputs."""
        return np.concatenate(inputs, axis=self.axis)

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the output, which is the new state too."""
        result = self.compute(view, *inputs)
        return result, [result for _ in states]


def _concatenation_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec, builder, quant = model.spec, model.builder, model.quant or (None,)
    others = [builder.input(f"x_{i}", model.shape, spec.dtype, *quant) for i in range(1, spec.parts)]
    return builder.concatenation([x, *others], spec.axis, name=spec.op)


def _pack_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec, builder, quant = model.spec, model.builder, model.quant or (None,)
    others = [builder.input(f"x_{i}", model.shape, spec.dtype, *quant) for i in range(1, spec.parts)]
    fields = {"valuesCount": spec.parts, "axis": spec.axis}
    return builder.emit("PACK", [x, *others], None, None, spec.op, "PackOptions", fields)


def _unpack_model(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    axis, builder = model.spec.axis % len(x.shape), model.builder
    shape = _without(x.shape, axis)
    parts = [
        builder.tensor(model.spec.op, shape, x.dtype, x.scale or None, x.zero_point or 0) for _ in range(x.shape[axis])
    ]
    fields = {"num": len(parts), "axis": axis}
    builder.operator("UNPACK", [x], parts, "UnpackOptions", fields, version=2 if x.dtype == "int8" else 1)
    return parts


def _split_model(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    return model.builder.split(x, model.spec.parts, model.spec.axis)


_ALONG = frozenset({"axis", "parts"})


OPERATORS = (
    Operator(
        "CONCATENATION",
        _concatenation,
        Tensors((1, MANY), types=(*MOVED, "uint32"), layout="following"),
        table=_CONCATENATION,
        quantization=Quantization(scales="optional"),
        legalization=Legalization((Concatenation,)),
        litert=LiteRT(fuses=False),
        model=SingleOperatorModel(_concatenation_model, _ALONG),
        limits="int8 inputs have the output's scale; uint8 inputs are rescaled to it",
    ),
    Operator(
        "PACK",
        _pack,
        Tensors((1, MANY), types=tuple(dtype for dtype in MOVED if dtype != "bool")),
        table=_PACK,
        quantization=Quantization(scales="any", alike=True),
        legalization=Legalization((Concatenation, Move), opaque=True),
        model=SingleOperatorModel(_pack_model, _ALONG),
        limits="all inputs have one scale",
    ),
    Operator(
        "UNPACK",
        _unpack,
        Tensors((1, 1), outputs=(1, MANY), types=tuple(dtype for dtype in MOVED if dtype != "int64")),
        table=_UNPACK,
        quantization=Quantization(scales="any", alike=True),
        legalization=Legalization((Move,), opaque=True),
        model=SingleOperatorModel(_unpack_model, frozenset({"axis"})),
    ),
    Operator(
        "SPLIT",
        _split,
        Tensors((2, 2), outputs=(1, MANY), types=MOVED, indices=(0,), layout="following"),
        table=_SPLIT,
        quantization=Quantization(scales="any"),
        legalization=Legalization((Move,)),
        model=SingleOperatorModel(_split_model, _ALONG),
        limits="equal parts",
    ),
    Operator(
        "SPLIT_V",
        _split_v,
        Tensors((3, 3), outputs=(1, MANY), types=MOVED, indices=(1, 2)),
        table=_SPLIT_V,
        quantization=Quantization(scales="any"),
        legalization=Legalization((Move,)),
    ),
)
