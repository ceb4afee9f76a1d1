"""Operators that pick elements along axes by index: GATHER, TILE, MIRROR_PAD, ..."""

from collections.abc import Sequence
from itertools import zip_longest
from math import prod
from typing import ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView, Shifted
from stages.ir.model_info import FileTensor, TensorInfo
from stages.ir.naming import named
from stages.ir.operators.axes import axis_of, distinct_axes
from stages.ir.operators.declaration import MOVED, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.movement import Move
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

GATHER = Table("GatherOptions", "axis:int batch_dims:int")
MIRROR_PAD = Table("MirrorPadOptions", "mode:byte")
REFLECT, SYMMETRIC = 0, 1
KINDS = frozenset({"broadcast_to", "gather", "mirror_pad", "reverse_v2", "tile"})
_INDEX_TYPES = ("int16", "int32", "int64")


class Pick(LayerOp):
    """Along each of `axes`, output element i is input element table[i]; other axes stay.

    The tables are constants `from0`, `from1`, ..., int32, one for each of `axes` (logical). Input and output have
    equally many axes. `kind` is the operator in the file.
    """

    shifts_alike: ClassVar[bool] = True
    op: Literal["pick"] = "pick"
    named_by: ClassVar[str] = "kind"
    any_type: ClassVar[bool] = True
    kind: str
    axes: tuple[int, ...]

    @classmethod
    def names(cls) -> frozenset[str]:
        """Names that rules may use for these layers."""
        return super().names() | KINDS

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Copy the elements."""
        (x,) = inputs
        for number, axis in enumerate(self.axes):
            x = np.take(x, view.constant(f"from{number}"), axis=axis)
        return x


class Gather(LayerOp):
    """Rows of the first input, selected by the indices in the second.

    y[b, o, r] = x[b, o, index of row r], with x [batch, outer, *sizes, inner], indices [batch, rows, len(sizes)] and y
    [batch, outer, rows, inner]. LiteRT aborts at an index that is out of range; here it is clamped. With `negative`, an
    index below 0 counts from the end, as in ONNX.
    """

    op: Literal["gather_rows"] = "gather_rows"
    named_by: ClassVar[str] = "kind"
    any_type: ClassVar[bool] = True
    kind: str
    batch: int
    outer: int
    sizes: tuple[int, ...]
    inner: int
    rows: int
    negative: bool = False

    @classmethod
    def names(cls) -> frozenset[str]:
        """Names that rules may use for these layers."""
        return super().names() | {"gather", "gather_nd", "embedding_lookup"}

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """None unless input and output shift alike."""
        return Shifted(self) if inputs[0] == output and not inputs[1] else None

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Copy the rows."""
        x = inputs[0].reshape(self.batch, self.outer, prod(self.sizes), self.inner)
        indices = inputs[1].reshape(self.batch, self.rows, len(self.sizes)).astype(np.int64)
        place = np.zeros((self.batch, self.rows), np.int64)
        for number, size in enumerate(self.sizes):
            index = indices[..., number]
            index = np.where(index < 0, index + size, index) if self.negative else index
            place = place * size + np.clip(index, 0, size - 1)
        batches = [x[batch][:, place[batch]] for batch in range(self.batch)]
        return np.stack(batches).reshape(view.outputs[0].shape)


def _gather(operation: Operation) -> list[Shape]:
    source, indices = operation.input(0), operation.input(1)
    options = operation.options(GATHER)
    axis = axis_of(options["axis"], source.shape)
    batch = options["batch_dims"]
    batch += len(indices.shape) if batch < 0 else 0
    if not 0 <= batch <= min(axis, len(indices.shape)):
        reason = f"with the axis {axis} and indices {_shown(indices)} it must be 0 to {min(axis, len(indices.shape))}"
        raise Refused(f"has batch_dims {options['batch_dims']}; {reason}")
    if indices.shape[:batch] != source.shape[:batch]:
        raise Refused(f"has {batch} batch axes, which differ in {_shown(source)} and {_shown(indices)}")
    _check_indices(indices, (source.shape[axis],))
    return [(*source.shape[:axis], *indices.shape[batch:], *source.shape[axis + 1 :])]


def _gather_nd(operation: Operation) -> list[Shape]:
    source, indices = operation.input(0), operation.input(1)
    if not indices.shape or not 0 < indices.shape[-1] <= len(source.shape):
        raise Refused(f"has indices {_shown(indices)}, but {_shown(source)} has {len(source.shape)} axes")
    depth = indices.shape[-1]
    _check_indices(indices, source.shape[:depth])
    return [(*indices.shape[:-1], *source.shape[depth:])]


def _embedding_lookup(operation: Operation) -> list[Shape]:
    ids, table = operation.input(0), operation.input(1)
    if len(ids.shape) != 1 or len(table.shape) < 2:
        raise Refused(f"looks up {_shown(ids)} in {_shown(table)}; it needs a list of rows and at least two axes")
    _check_indices(ids, (table.shape[0],))
    return [(*ids.shape, *table.shape[1:])]


def _gather_places(operation: Operation) -> tuple[int, int]:
    shape = operation.input(0).shape
    return 1, shape[axis_of(operation.options(GATHER)["axis"], shape)]


def _check_indices(indices: TensorInfo, sizes: Shape) -> None:
    """Raise Refused for wrong types, and for constant indices that are out of range.

    `sizes`: one for each entry of the last axis.
    """
    if indices.dtype not in _INDEX_TYPES:
        raise Refused(f"has indices of {indices.dtype} in {named(indices)}; supported: {', '.join(_INDEX_TYPES)}")
    if indices.data is None:
        return
    values = indices.values().reshape(-1, len(sizes))
    for at, size in enumerate(sizes):
        wrong = values[:, at][(values[:, at] < 0) | (values[:, at] >= size)]
        if wrong.size:
            raise Refused(f"has the index {int(wrong[0])} in {named(indices)}; the axis has {size} elements")


def _mirror_pad(operation: Operation) -> list[Shape]:
    source, amounts = operation.input(0), operation.constant(1, "the padding")
    mode = operation.options(MIRROR_PAD)["mode"]
    if mode not in (REFLECT, SYMMETRIC):
        raise Refused(f"has the mode {mode}; supported: reflect (0) and symmetric (1)")
    if amounts.shape != (len(source.shape), 2):
        raise Refused(f"has padding of shape {listed(amounts.shape)}; {_shown(source)} needs [{len(source.shape)}, 2]")
    shape = []
    for axis, (size, (before, after)) in enumerate(zip(source.shape, amounts.tolist(), strict=True)):
        most = size - 1 if mode == REFLECT else size
        if not 0 <= min(before, after) <= max(before, after) <= most:
            raise Refused(f"pads axis {axis} of {_shown(source)} by {before} and {after}; the maximum is {most}")
        shape.append(before + size + after)
    return [tuple(shape)]


def _tile(operation: Operation) -> list[Shape]:
    source = operation.input(0)
    times = operation.integers(1, "the multiples", len(source.shape))
    if min(times, default=1) < 1:
        raise Refused(f"repeats {_shown(source)} {listed(times)} times; each must be at least 1")
    return [tuple(size * count for size, count in zip(source.shape, times, strict=True))]


def _broadcast_to(operation: Operation) -> list[Shape]:
    source, shape = operation.input(0), operation.integers(1, "the shape")
    pairs = zip_longest(reversed(source.shape), reversed(shape), fillvalue=None)
    if min(shape, default=1) < 1 or any(to is None or size not in (None, 1, to) for size, to in pairs):
        raise Refused(f"cannot broadcast {_shown(source)} to {listed(shape)}")
    return [tuple(shape)]


def _reverse(operation: Operation) -> list[Shape]:
    source = operation.input(0)
    distinct_axes(operation.integers(1, "the axes"), source.shape)
    return [source.shape]


def _shown(tensor: TensorInfo) -> str:
    return f"{named(tensor)} {listed(tensor.shape)}"


def _constant(model: SingleOperatorBuilder, values: Sequence[int] | Sequence[tuple[int, int]], role: str) -> FileTensor:
    return model.builder.constant(f"{model.spec.op}/{role}", np.asarray(values, np.int32))


def _tile_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    return model.builder.emit(
        "TILE", [x, _constant(model, model.spec.multiples or (), "multiples")], None, None, model.spec.op
    )


def _broadcast_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    b, shape = model.builder, model.spec.new_shape or ()
    out = b.tensor(model.spec.op, shape, x.dtype, x.scale or None, x.zero_point or 0)
    b.operator("BROADCAST_TO", [x, _constant(model, shape, "shape")], [out], version=2)
    return out


def _reverse_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    return model.builder.emit(
        "REVERSE_V2", [x, _constant(model, model.spec.axes or (), "axes")], None, None, model.spec.op
    )


def _gather_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    indices, fields = _constant(model, model.spec.indices or (), "indices"), {"axis": model.spec.axis, "batchDims": 0}
    return model.builder.emit("GATHER", [x, indices], None, None, model.spec.op, "GatherOptions", fields)


def _mirror_pad_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    pads = _constant(model, model.spec.pads or (), "paddings")
    return model.builder.emit("MIRROR_PAD", [x, pads], None, None, model.spec.op, "MirrorPadOptions", {"mode": 0})


OPERATORS = (
    Operator(
        "BROADCAST_TO",
        _broadcast_to,
        Tensors((2, 2), types=MOVED, indices=(1,)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Pick, Move), opaque=True),
        model=SingleOperatorModel(_broadcast_model, frozenset({"new_shape"}), ("new_shape",)),
    ),
    Operator(
        "EMBEDDING_LOOKUP",
        _embedding_lookup,
        Tensors((2, 2), types=MOVED, apart=(0,), looks_up=lambda operation: (0, operation.input(1).shape[0])),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Gather,), opaque=True),
        litert=LiteRT(version=1),
    ),
    Operator(
        "GATHER",
        _gather,
        Tensors((2, 2), types=MOVED, apart=(1,), looks_up=_gather_places),
        table=GATHER,
        quantization=Quantization(scales="any"),
        legalization=Legalization((Pick, Gather, Move), opaque=True),
        model=SingleOperatorModel(_gather_model, frozenset({"indices", "axis"}), ("indices",)),
    ),
    Operator(
        "GATHER_ND",
        _gather_nd,
        Tensors(
            (2, 2),
            types=MOVED,
            apart=(1,),
            looks_up=lambda operation: (1, min(operation.input(0).shape[: operation.input(1).shape[-1]])),
        ),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Gather,), opaque=True),
    ),
    Operator(
        "MIRROR_PAD",
        _mirror_pad,
        Tensors((2, 2), types=MOVED, indices=(1,)),
        table=MIRROR_PAD,
        quantization=Quantization(scales="optional", alike=True),
        legalization=Legalization((Pick,), opaque=True),
        model=SingleOperatorModel(_mirror_pad_model, frozenset({"pads"}), ("pads",)),
    ),
    Operator(
        "REVERSE_V2",
        _reverse,
        Tensors((2, 2), types=MOVED, indices=(1,)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Move,), opaque=True),
        model=SingleOperatorModel(_reverse_model, frozenset({"axes"}), ("axes",)),
    ),
    Operator(
        "TILE",
        _tile,
        Tensors((2, 2), types=MOVED, indices=(1,)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Pick, Move), opaque=True),
        model=SingleOperatorModel(_tile_model, frozenset({"multiples"}), ("multiples",)),
    ),
)
