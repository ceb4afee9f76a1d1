"""Operators that reduce over axes."""

from __future__ import annotations

from stages.import_model.checks.operation import Operation, Refused, Shape
from stages.import_model.checks.shapes.axes import distinct_axes


def _reduce(operation: Operation) -> list[Shape]:
    shape, keep = operation.input(0).shape, operation.options("ReducerOptions")["keep_dims"]
    axes = distinct_axes(operation.integers(1, "the axes"), shape)
    if not axes:
        raise Refused("has no axis to reduce over")
    kept = [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]
    return [tuple(kept)]


RULES = dict.fromkeys(("MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM"), _reduce)
