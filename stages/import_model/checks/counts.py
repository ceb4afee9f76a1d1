"""Number of inputs and outputs, and the table of options."""

from __future__ import annotations

from stages.import_model.checks.operation import Operation, Refused
from stages.import_model.checks.signatures import MANY, SIGNATURES


def check_counts(operation: Operation) -> None:
    """Refused when an operator has too few or too many tensors, lacks one, or has one twice among its outputs."""
    signature = SIGNATURES[operation.op]
    for what, limits, found in (
        ("inputs", signature.inputs, operation.inputs),
        ("outputs", signature.outputs, operation.outputs),
    ):
        if not limits[0] <= len(found) <= limits[1]:
            raise Refused(f"has {len(found)} {what}; it takes {_range(limits)}")
    for position in range(signature.inputs[0]):
        operation.input(position)


def check_options(operation: Operation) -> None:
    """Refused when the table of options is another operator's, or is missing where it is needed."""
    signature, found = SIGNATURES[operation.op], operation.operator.options
    if not signature.table:
        return
    if found is None and signature.required:
        raise Refused(f"has no options; it needs {signature.table}")
    if found is not None and found.table != signature.table:
        raise Refused(f"has {found.table} as its options, where {signature.table} belong")


def _range(limits: tuple[int, int]) -> str:
    low, high = limits
    if low == high:
        return str(low)
    return f"{low} or more" if high == MANY else f"{low} to {high}"
