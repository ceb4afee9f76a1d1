"""Number of inputs and outputs, and the table of options."""

from __future__ import annotations

from stages.import_model.checks.errors import operator_error
from stages.import_model.checks.types import check_bytes
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.ir.operators.declaration import MANY
from stages.ir.operators.operation import Operation, Refused
from stages.ir.operators.table import OPERATORS
from stages.support.messages.operator_error import OperatorError, together

_Limits = tuple[tuple[int, int], tuple[int, int]]  # least and most inputs, least and most outputs
# Operators that normalizing replaces or computes; ASSIGN_VARIABLE has a first value and a result once it is replaced.
_NORMALIZED: dict[str, _Limits] = {
    "ASSIGN_VARIABLE": ((2, 3), (0, 1)),
    "BROADCAST_ARGS": ((2, 2), (1, 1)),
    "RANGE": ((3, 3), (1, 1)),
    "RANK": ((1, 1), (1, 1)),
    "READ_VARIABLE": ((1, 1), (1, 1)),
    "SHAPE": ((1, 1), (1, 1)),
    "VAR_HANDLE": ((0, 0), (1, 1)),
    "ZEROS_LIKE": ((1, 1), (1, 1)),
}


def check_all_counts(info: ModelInfo) -> None:
    """Raise StageError, naming all operators with too few, too many or too large tensors.

    It comes before any code that takes the number of tensors for granted.
    """
    errors: list[OperatorError] = []
    for operator in info.operators:
        try:
            _check_operator_counts(operator, info)
        except Refused as refused:
            errors.append(operator_error(operator, info, refused.what))
    if errors:
        raise together(errors)


def _check_operator_counts(operator: OperatorInfo, info: ModelInfo) -> None:
    operation = Operation.of(operator, info)
    if operator.op in _NORMALIZED:
        inputs, outputs = _NORMALIZED[operator.op]
        _check_limits(operation, inputs, outputs)
        for position in range(inputs[0]):
            operation.input(position)
    elif operator.op in OPERATORS:
        check_counts(operation)
    for tensor in (*operation.inputs, *operation.outputs):
        if tensor is not None and min(tensor.shape, default=1) > 0:
            check_bytes(tensor)


def check_counts(operation: Operation) -> None:
    """Refused when an operator has too few or too many tensors, lacks one, or has one twice among its outputs."""
    declared = OPERATORS[operation.op]
    _check_limits(operation, declared.inputs, declared.outputs)
    for position in sorted({*range(declared.inputs[0])} - {*declared.optional}):
        operation.input(position)


def _check_limits(operation: Operation, inputs: tuple[int, int], outputs: tuple[int, int]) -> None:
    for what, limits, found in (("inputs", inputs, operation.inputs), ("outputs", outputs, operation.outputs)):
        if not limits[0] <= len(found) <= limits[1]:
            counted = f"{len(found)} {what}" if len(found) != 1 else f"1 {what[:-1]}"
            raise Refused(f"has {counted}; it {'takes' if what == 'inputs' else 'gives'} {_range(limits)}")


def check_options(operation: Operation) -> None:
    """Refused when the table of options is another operator's, or is missing where it is needed."""
    table, found = OPERATORS[operation.op].table, operation.operator.options
    if table is None:
        return
    if found is None and table.required:
        raise Refused(f"has no options; it needs {table.name}")
    if found is not None and found.table != table.name:
        raise Refused(f"has {found.table} as its options, where {table.name} belong")


def _range(limits: tuple[int, int]) -> str:
    low, high = limits
    if low == high:
        return str(low)
    return f"{low} or more" if high == MANY else f"{low} to {high}"
