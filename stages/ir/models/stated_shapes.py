"""Output shapes of an operator for a model under construction, by stages.ir.operators."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from stages.ir.model_info import OperatorInfo, Options, TensorInfo
from stages.ir.models.tflite_writer import BuildError, Tensor
from stages.ir.operators.operation import Operation, Refused, Shape, Table
from stages.ir.operators.table import OPERATORS
from stages.support.lazy import schema

_NO_SCALE = np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)


def stated_shapes(
    op: str,
    name: str,
    inputs: Sequence[Tensor | None],
    fields: Mapping[str, Any],
    results: int = 1,
    custom: bytes = b"",
) -> list[Shape]:
    """Return the shapes of an operator's results.

    fields  of the operator's options table, by schema names; missing ones have LiteRT's zeros
    custom  options of a custom operator

    Raises BuildError, which begins with `name`, for an unknown operator, and for inputs or options that it refuses.
    """
    if op not in OPERATORS:
        raise BuildError(f"{name}: there is no operator {op}")
    operator = OPERATORS[op]
    options = None
    if operator.table is not None:
        names = _names(operator.table)
        values = {names[field]: value for field, value in fields.items() if field in names}
        options = Options(operator.table.name, {**operator.table.defaults, **values})
    tensors = tuple(None if tensor is None else _described(tensor) for tensor in inputs)
    result = TensorInfo(-1, name, (), "float32", *_NO_SCALE, 0, None, variable=False, dynamic=False)
    info = OperatorInfo(0, op, tuple(-1 if t is None else t.index for t in tensors), (-1,) * results, options, custom)
    try:
        return operator.shapes(Operation(info, tensors, (result,) * results))
    except Refused as refused:
        raise BuildError(f"{name}: {op} {refused.what}") from None


def _described(tensor: Tensor) -> TensorInfo:
    """Return the tensor as the reader describes it; integer constants have their data."""
    values = tensor.constant if tensor.dtype in ("int32", "int64") else None
    data = None if values is None else memoryview(values.tobytes())
    return TensorInfo(
        tensor.index, tensor.name, tensor.shape, tensor.dtype, *_NO_SCALE, 0, data, variable=False, dynamic=False
    )


@cache
def _names(table: Table) -> dict[str, str]:
    """Return the options table's fields by their schema names; both are in schema order."""
    schema_fields = vars(getattr(schema, f"{table.name}T")())
    return dict(zip(schema_fields, (name for name, _ in table.kinds if name), strict=False))
