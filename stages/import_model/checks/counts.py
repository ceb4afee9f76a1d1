"""Check the number of inputs and outputs, and the table of options."""

from stages.import_model.checks.types import check_bytes
from stages.import_model.operators import operator_error
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.operators.declaration import MANY
from stages.ir.operators.operation import Operation, Refused
from stages.ir.operators.table import OPERATORS
from stages.support.messages.operator_error import OperatorError, combined_error

_Limits = tuple[tuple[int, int], tuple[int, int]]  # least and most inputs, least and most outputs
# Operators that normalization replaces or folds. A replaced ASSIGN_VARIABLE also has an initial value and a result.
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
    """Raise StageError that lists all operators with too few, too many or too large tensors.

    Runs before any code that relies on the number of tensors.
    """
    errors: list[OperatorError] = []
    for operator in info.operators:
        try:
            _check_operator_counts(operator, info)
        except Refused as refused:
            errors.append(operator_error(operator, info, refused.what))
    if errors:
        raise combined_error(errors)


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
    """Raise Refused for too few or too many tensors, or an absent required tensor."""
    declared = OPERATORS[operation.op]
    _check_limits(operation, declared.tensors.inputs, declared.tensors.outputs)
    for position in sorted({*range(declared.tensors.inputs[0])} - {*declared.tensors.optional}):
        operation.input(position)


def _check_limits(operation: Operation, inputs: tuple[int, int], outputs: tuple[int, int]) -> None:
    for label, limits, tensors in (("inputs", inputs, operation.inputs), ("outputs", outputs, operation.outputs)):
        if not limits[0] <= len(tensors) <= limits[1]:
            count = f"{len(tensors)} {label}" if len(tensors) != 1 else f"1 {label[:-1]}"
            raise Refused(f"has {count}; it {'takes' if label == 'inputs' else 'gives'} {_range(limits)}")


def check_options(operation: Operation) -> None:
    """Raise Refused if the options table is missing or belongs to another operator."""
    table, options = OPERATORS[operation.op].table, operation.operator.options
    if table is None:
        return
    if options is None and table.required:
        raise Refused(f"has no options; it needs {table.name}")
    if options is not None and options.table != table.name:
        raise Refused(f"has {options.table} as its options; it needs {table.name}")


def _range(limits: tuple[int, int]) -> str:
    low, high = limits
    if low == high:
        return str(low)
    return f"{low} or more" if high == MANY else f"{low} to {high}"
