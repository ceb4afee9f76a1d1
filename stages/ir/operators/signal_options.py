"""Options and shapes of TFLM's signal operators."""

from collections.abc import Mapping
from typing import Any

from stages.ir.naming import named
from stages.ir.operators.operation import Operation, Refused, Shape, listed
from stages.support.messages import escape

Range = tuple[int, int]
BOOLEAN: Range = (0, 1)
SIZE: Range = (1, (1 << 31) - 1)
SHIFT: Range = (0, 31)
NUMBER: Range = (0, (1 << 31) - 1)


def options_of(operation: Operation, ranges: Mapping[str, Range]) -> dict[str, int]:
    """Return the options by name; each is checked against its smallest and largest value.

    TFLM reads options by their position in alphabetical order, so missing and unknown ones are refused.
    """
    options = operation.flexbuffer if operation.operator.custom else {}
    names = ", ".join(sorted(ranges)) or "none"
    if not isinstance(options, dict) or set(options) != set(ranges):
        present = ", ".join(map(escape.name, sorted(options))) if isinstance(options, dict) else ""
        raise Refused(f"has the options {present or 'none'}; TFLM's are {names}")
    return {name: _checked(name, options[name], *bounds) for name, bounds in ranges.items()}


def _checked(name: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or not low <= value <= high:
        raise Refused(f"has the option {name} = {escape.line(str(value))}; it must be an integer from {low} to {high}")
    return int(value)


def last_axis(operation: Operation, position: int = 0) -> int:
    """Return the length of an input's last axis. Raises Refused for a scalar."""
    tensor = operation.input(position)
    if not tensor.shape:
        raise Refused(f"reads {named(tensor)}, a scalar; it must have at least one axis")
    return tensor.shape[-1]


def frames_of(operation: Operation, position: int = 0) -> Shape:
    """Return the axes of an input before its last one."""
    last_axis(operation, position)
    return operation.input(position).shape[:-1]


def constant(operation: Operation, position: int, length: int | None = None, at_least: int = 0) -> Any:
    """Return the values of a constant int16 input of one axis. Raises Refused."""
    tensor = operation.input(position)
    if tensor.dtype != "int16" or len(tensor.shape) != 1:
        raise Refused(f"reads {named(tensor)}, {tensor.dtype}{listed(tensor.shape)}; it must be int16 with one axis")
    if tensor.data is None:
        raise Refused(f"reads {named(tensor)}, a computed tensor; it must be a constant")
    if length is not None and tensor.shape[0] != length:
        raise Refused(f"reads {named(tensor)} of {tensor.shape[0]} values; it must have {length}")
    if tensor.shape[0] < at_least:
        raise Refused(f"reads {named(tensor)} of {tensor.shape[0]} values; it must have at least {at_least}")
    return tensor.values()


def same_type(operation: Operation, position: int, dtype: str, shape: Shape) -> None:
    """Raise Refused unless an input has this type and shape."""
    tensor = operation.input(position)
    if tensor.dtype != dtype or tensor.shape != shape:
        has = f"{tensor.dtype}{listed(tensor.shape)}"
        raise Refused(f"reads {named(tensor)}, {has}; it must be {dtype}{listed(shape)}")


def output_types(operation: Operation, *types: str) -> None:
    """Raise Refused unless the outputs have these types."""
    for tensor, dtype in zip(operation.outputs, types, strict=True):
        if tensor.dtype != dtype:
            raise Refused(f"writes {tensor.dtype} to {named(tensor)}; it must be {dtype}")
