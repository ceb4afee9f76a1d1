"""Operators that pick what the output has along each axis by numbers that are known: GATHER, TILE, MIRROR_PAD, ..."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, ClassVar, Literal

from stages.ir.models.naming import named
from stages.ir.operators.axes import axis_of, distinct_axes
from stages.ir.operators.declaration import MOVED, OneOperatorModel, Operator, Table
from stages.ir.operators.layer import LayerOp, Shifted
from stages.ir.operators.movement import Move
from stages.ir.operators.operation import Operation, Refused, Shape, listed

if TYPE_CHECKING:
    from stages.ir.graph import LayerView
    from stages.ir.models.operators import OneOperator
    from stages.ir.models.tflite_reader import TensorInfo
    from stages.ir.models.tflite_writer import Tensor as FileTensor
    from stages.ir.operators.layer import Array

GATHER = Table("GatherOptions", "axis:int batch_dims:int")
MIRROR_PAD = Table("MirrorPadOptions", "mode:byte")
REFLECT, SYMMETRIC = 0, 1
KINDS = frozenset({"broadcast_to", "gather", "mirror_pad", "reverse_v2", "tile"})
_INDEX_TYPES = ("int16", "int32", "int64")


class Pick(LayerOp):
    """Along each of `axes`, element i of the output is element table[i] of the input; along others they are alike.

    The tables are constants `from0`, `from1`, ..., int32, one for each of `axes` (logical). Input and output have as
    many axes. `kind` is what the file has it for.
    """

    op: Literal["pick"] = "pick"
    any_type: ClassVar[bool] = True
    kind: str
    axes: tuple[int, ...]

    @property
    def named(self) -> str:
        return self.kind

    @classmethod
    def names(cls) -> frozenset[str]:
        return super().names() | KINDS

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        return Shifted(self) if inputs[0] == output else None

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        (x,) = inputs
        for number, axis in enumerate(self.axes):
            x = np.take(x, view.constant(f"from{number}"), axis=axis)
        return x


class Gather(LayerOp):
    """Rows of the first input by indices that the second holds: y[b, o, r] = x[b, o, index of row r].

    x is [batch, outer, *sizes, inner], the indices are [batch, rows, len(sizes)], y is [batch, outer, rows, inner].
    LiteRT stops at an index outside of its size; here it counts as the nearest that is inside. With `negative`, one
    below 0 counts from the end, as in ONNX.
    """

    op: Literal["gather_rows"] = "gather_rows"
    any_type: ClassVar[bool] = True
    kind: str
    batch: int
    outer: int
    sizes: tuple[int, ...]
    inner: int
    rows: int
    negative: bool = False

    @property
    def named(self) -> str:
        return self.kind

    @classmethod
    def names(cls) -> frozenset[str]:
        return super().names() | {"gather", "gather_nd", "embedding_lookup"}

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        return Shifted(self) if inputs[0] == output and not inputs[1] else None

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        x = inputs[0].reshape(self.batch, self.outer, prod(self.sizes), self.inner)
        indices = inputs[1].reshape(self.batch, self.rows, len(self.sizes)).astype(np.int64)
        place = np.zeros((self.batch, self.rows), np.int64)
        for number, size in enumerate(self.sizes):
            index = indices[..., number]
            index = np.where(index < 0, index + size, index) if self.negative else index
            place = place * size + np.clip(index, 0, size - 1)
        found = [x[batch][:, place[batch]] for batch in range(self.batch)]
        return np.stack(found).reshape(view.outputs[0].shape)


def _gather(operation: Operation) -> list[Shape]:
    source, indices = operation.input(0), operation.input(1)
    options = operation.options(GATHER)
    axis = axis_of(options["axis"], source.shape)
    batch = options["batch_dims"]
    batch += len(indices.shape) if batch < 0 else 0
    if not 0 <= batch <= min(axis, len(indices.shape)):
        raise Refused(f"has batch_dims {options['batch_dims']}, with the axis {axis} and indices {_shown(indices)}")
    if indices.shape[:batch] != source.shape[:batch]:
        raise Refused(f"has {batch} batch axes, which differ in {_shown(source)} and {_shown(indices)}")
    _check_indices(indices, (source.shape[axis],))
    return [(*source.shape[:axis], *indices.shape[batch:], *source.shape[axis + 1 :])]


def _gather_nd(operation: Operation) -> list[Shape]:
    source, indices = operation.input(0), operation.input(1)
    if not indices.shape or not 0 < indices.shape[-1] <= len(source.shape):
        raise Refused(f"has indices {_shown(indices)}, where {_shown(source)} has {len(source.shape)} axes")
    depth = indices.shape[-1]
    _check_indices(indices, source.shape[:depth])
    return [(*indices.shape[:-1], *source.shape[depth:])]


def _embedding_lookup(operation: Operation) -> list[Shape]:
    ids, table = operation.input(0), operation.input(1)
    if len(ids.shape) != 1 or len(table.shape) < 2:
        raise Refused(f"looks up {_shown(ids)} in {_shown(table)}; it takes a list of rows and at least two axes")
    _check_indices(ids, (table.shape[0],))
    return [(*ids.shape, *table.shape[1:])]


def _gather_places(operation: Operation) -> tuple[int, int]:
    shape = operation.input(0).shape
    return 1, shape[axis_of(operation.options(GATHER)["axis"], shape)]


def _check_indices(indices: TensorInfo, sizes: Shape) -> None:
    """Refused for another type, and for constants outside of `sizes`, one for each entry of the last axis."""
    if indices.dtype not in _INDEX_TYPES:
        raise Refused(f"has indices of {indices.dtype} in {named(indices)}; known are {', '.join(_INDEX_TYPES)}")
    if indices.data is None:
        return
    values = indices.values().reshape(-1, len(sizes))
    for at, size in enumerate(sizes):
        wrong = values[:, at][(values[:, at] < 0) | (values[:, at] >= size)]
        if wrong.size:
            raise Refused(f"has the index {int(wrong[0])} in {named(indices)}, where the axis has {size} elements")


def _mirror_pad(operation: Operation) -> list[Shape]:
    source, amounts = operation.input(0), operation.constant(1, "the padding")
    mode = operation.options(MIRROR_PAD)["mode"]
    if mode not in (REFLECT, SYMMETRIC):
        raise Refused(f"has the mode {mode}, which is neither reflect nor symmetric")
    if amounts.shape != (len(source.shape), 2):
        raise Refused(f"has padding of shape {listed(amounts.shape)}, where {_shown(source)} is padded")
    found = []
    for axis, (size, (before, after)) in enumerate(zip(source.shape, amounts.tolist(), strict=True)):
        most = size - 1 if mode == REFLECT else size
        if not 0 <= min(before, after) <= max(before, after) <= most:
            raise Refused(f"pads axis {axis} of {_shown(source)} by {before} and {after}; {most} are the most")
        found.append(before + size + after)
    return [tuple(found)]


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


def _given(one: OneOperator, values: Sequence[int] | Sequence[tuple[int, int]], role: str) -> FileTensor:
    import numpy as np

    return one.builder.constant(f"{one.spec.op}/{role}", np.asarray(values, np.int32))


def _tile_model(one: OneOperator, x: FileTensor) -> FileTensor:
    return one.builder.emit("TILE", [x, _given(one, one.spec.multiples or (), "multiples")], None, None, one.spec.op)


def _broadcast_model(one: OneOperator, x: FileTensor) -> FileTensor:
    b, shape = one.builder, one.spec.new_shape or ()
    made = b.tensor(one.spec.op, shape, x.dtype, x.scale or None, x.zero_point or 0)
    b.operator("BROADCAST_TO", [x, _given(one, shape, "shape")], [made], version=2)
    return made


def _reverse_model(one: OneOperator, x: FileTensor) -> FileTensor:
    return one.builder.emit("REVERSE_V2", [x, _given(one, one.spec.axes or (), "axes")], None, None, one.spec.op)


def _gather_model(one: OneOperator, x: FileTensor) -> FileTensor:
    indices, fields = _given(one, one.spec.indices or (), "indices"), {"axis": one.spec.axis, "batchDims": 0}
    return one.builder.emit("GATHER", [x, indices], None, None, one.spec.op, "GatherOptions", fields)


def _mirror_pad_model(one: OneOperator, x: FileTensor) -> FileTensor:
    pads = _given(one, one.spec.pads or (), "paddings")
    return one.builder.emit("MIRROR_PAD", [x, pads], None, None, one.spec.op, "MirrorPadOptions", {"mode": 0})


OPERATORS = (
    Operator(
        "BROADCAST_TO",
        _broadcast_to,
        (2, 2),
        types=MOVED,
        indices=(1,),
        opaque=True,
        scales="any",
        layers=(Pick, Move),
        model=OneOperatorModel(_broadcast_model, frozenset({"new_shape"}), ("new_shape",)),
    ),
    Operator(
        "EMBEDDING_LOOKUP",
        _embedding_lookup,
        (2, 2),
        types=MOVED,
        apart=(0,),
        looks_up=lambda operation: (0, operation.input(1).shape[0]),
        opaque=True,
        scales="any",
        layers=(Gather,),
        version=1,
    ),
    Operator(
        "GATHER",
        _gather,
        (2, 2),
        table=GATHER,
        types=MOVED,
        apart=(1,),
        looks_up=_gather_places,
        opaque=True,
        scales="any",
        layers=(Pick, Gather, Move),
        model=OneOperatorModel(_gather_model, frozenset({"indices", "axis"}), ("indices",)),
    ),
    Operator(
        "GATHER_ND",
        _gather_nd,
        (2, 2),
        types=MOVED,
        apart=(1,),
        looks_up=lambda operation: (1, min(operation.input(0).shape[: operation.input(1).shape[-1]])),
        opaque=True,
        scales="any",
        layers=(Gather,),
    ),
    Operator(
        "MIRROR_PAD",
        _mirror_pad,
        (2, 2),
        table=MIRROR_PAD,
        types=MOVED,
        indices=(1,),
        opaque=True,
        scales="optional",
        alike=True,
        layers=(Pick,),
        model=OneOperatorModel(_mirror_pad_model, frozenset({"pads"}), ("pads",)),
    ),
    Operator(
        "REVERSE_V2",
        _reverse,
        (2, 2),
        types=MOVED,
        indices=(1,),
        opaque=True,
        scales="any",
        layers=(Move,),
        model=OneOperatorModel(_reverse_model, frozenset({"axes"}), ("axes",)),
    ),
    Operator(
        "TILE",
        _tile,
        (2, 2),
        types=MOVED,
        indices=(1,),
        opaque=True,
        scales="any",
        layers=(Pick, Move),
        model=OneOperatorModel(_tile_model, frozenset({"multiples"}), ("multiples",)),
    ),
)
