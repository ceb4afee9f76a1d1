"""Operators that join tensors or cut one into several."""

from __future__ import annotations

from stages.import_model.checks.operation import Operation, Refused, Shape, listed
from stages.import_model.checks.shapes.axes import axis_of
from stages.models.naming import named


def _concatenation(operation: Operation) -> list[Shape]:
    first = operation.input(0)
    axis, total = axis_of(operation.options("ConcatenationOptions")["axis"], first.shape), 0
    for position in range(len(operation.inputs)):
        part = operation.input(position)
        if len(part.shape) != len(first.shape) or _without(part.shape, axis) != _without(first.shape, axis):
            shapes = f"{named(first)} {listed(first.shape)} and {named(part)} {listed(part.shape)}"
            raise Refused(f"cannot join {shapes} along axis {axis}")
        total += part.shape[axis]
    return [(*first.shape[:axis], total, *first.shape[axis + 1 :])]


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _split(operation: Operation) -> list[Shape]:
    source, parts = operation.input(1), _parts(operation, "SplitOptions")
    axis = axis_of(operation.integers(0, "the axis", 1)[0], source.shape)
    if source.shape[axis] % parts:
        raise Refused(f"cannot cut axis {axis} of {named(source)} {listed(source.shape)} into {parts} equal parts")
    return [_with(source.shape, axis, source.shape[axis] // parts)] * parts


def _split_v(operation: Operation) -> list[Shape]:
    source = operation.input(0)
    sizes = operation.integers(1, "the sizes", _parts(operation, "SplitVOptions"))
    axis = axis_of(operation.integers(2, "the axis", 1)[0], source.shape)
    whole = source.shape[axis]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = whole - sum(sizes) - 1
    if min(sizes) < 1 or sum(sizes) != whole:
        raise Refused(f"cannot cut axis {axis} of {named(source)} {listed(source.shape)} into {listed(sizes)}")
    return [_with(source.shape, axis, size) for size in sizes]


def _parts(operation: Operation, table: str) -> int:
    parts: int = operation.options(table)["num_splits"]
    if parts != len(operation.outputs):
        raise Refused(f"has {len(operation.outputs)} outputs, but is to cut into {parts}")
    return parts


def _with(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


RULES = {"CONCATENATION": _concatenation, "SPLIT": _split, "SPLIT_V": _split_v}
