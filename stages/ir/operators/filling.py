"""FILL and ONE_HOT: tensors of few different values."""

from math import prod

from stages.ir.naming import named
from stages.ir.operators.choices import Comparison, Select
from stages.ir.operators.declaration import MOVED, NUMBERS, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.movement import Move
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.picking import Pick

_ONE_HOT = Table("OneHotOptions", "axis:int", required=False)
_LAST = -1  # behind the axes of the indices; LiteRT's only negative axis
_INDEX_TYPES = ("int32", "int64")


def _fill(operation: Operation) -> list[Shape]:
    shape, value = operation.integers(0, "the shape"), operation.input(1)
    if len(operation.input(0).shape) != 1:
        raise Refused(f"has a shape tensor of {len(operation.input(0).shape)} axes; it must be a list")
    if value.shape:
        raise Refused(f"fills with {named(value)} {listed(value.shape)}, which is not a scalar")
    if min(shape, default=1) < 1:
        raise Refused(f"has the shape {listed(shape)}; each size must be at least 1")
    return [tuple(shape)]


def _one_hot(operation: Operation) -> list[Shape]:
    indices, axis = operation.input(0), operation.options(_ONE_HOT)["axis"]
    if indices.dtype not in _INDEX_TYPES:
        raise Refused(f"has indices of {indices.dtype} in {named(indices)}; supported: {', '.join(_INDEX_TYPES)}")
    depth, *more = operation.integers(1, "the depth", 1)
    if depth < 1 or more:
        raise Refused(f"has the depth {depth}; it must be at least 1")
    for position in (2, 3):
        value = operation.input(position)
        if prod(value.shape) != 1:
            raise Refused(f"writes {named(value)} {listed(value.shape)}, which is not a single value")
    axis = len(indices.shape) if axis == _LAST else axis
    if not 0 <= axis <= len(indices.shape):
        raise Refused(f"has the axis {axis}, which is out of range for indices {listed(indices.shape)}")
    return [(*indices.shape[:axis], depth, *indices.shape[axis:])]


OPERATORS = (
    Operator(
        "FILL",
        _fill,
        Tensors((2, 2), types=MOVED, indices=(0,)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Pick, Move), opaque=True),
        litert=LiteRT(version=1),
    ),
    Operator(
        "ONE_HOT",
        _one_hot,
        Tensors((4, 4), types=(*NUMBERS, "bool"), indices=(1,), apart=(0,)),
        table=_ONE_HOT,
        quantization=Quantization(scales="any"),
        legalization=Legalization((Comparison, Select, Move), opaque=True),
        litert=LiteRT(version=1),
        limits="the axis is -1 or not negative",
    ),
)
