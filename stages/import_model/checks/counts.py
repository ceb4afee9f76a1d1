"""Number of inputs and outputs, and the table of options."""

from __future__ import annotations

from stages.operators.declaration import MANY
from stages.operators.operation import Operation, Refused
from stages.operators.table import OPERATORS


def check_counts(operation: Operation) -> None:
    """Refused when an operator has too few or too many tensors, lacks one, or has one twice among its outputs."""
    declared = OPERATORS[operation.op]
    for what, limits, found in (
        ("inputs", declared.inputs, operation.inputs),
        ("outputs", declared.outputs, operation.outputs),
    ):
        if not limits[0] <= len(found) <= limits[1]:
            raise Refused(f"has {len(found)} {what}; it takes {_range(limits)}")
    for position in sorted({*range(declared.inputs[0])} - {*declared.optional}):
        operation.input(position)


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
