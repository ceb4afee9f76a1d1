"""Operators that compute each element by itself: one input, or two that broadcast."""

from __future__ import annotations

from itertools import zip_longest

from stages.import_model.checks.operation import Operation, Refused, Shape, listed
from stages.models.naming import named

_UNARY = (
    "ABS", "COS", "DEQUANTIZE", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LEAKY_RELU", "LOG", "LOGISTIC", "NEG", "QUANTIZE",
    "RELU", "RELU6", "RELU_N1_TO_1", "RSQRT", "SIN", "SQRT", "SQUARE", "TANH",
)  # fmt: skip
_ALONG_LAST_AXIS = ("L2_NORMALIZATION", "LOG_SOFTMAX", "SOFTMAX")
_BINARY = ("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE", "SUB")


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """The common shape, as NumPy has it; None when there is none."""
    found = []
    for a, b in zip_longest(reversed(left), reversed(right), fillvalue=1):
        if a != b and 1 not in (a, b):
            return None
        found.append(b if a == 1 else a)
    return tuple(reversed(found))


def _same(operation: Operation) -> list[Shape]:
    return [operation.input(0).shape]


def _last_axis(operation: Operation) -> list[Shape]:
    if not operation.input(0).shape:
        raise Refused(f"works along the last axis, and {named(operation.input(0))} is a single number")
    return _same(operation)


def _binary(operation: Operation) -> list[Shape]:
    left, right = operation.input(0), operation.input(1)
    found = broadcast(left.shape, right.shape)
    if found is None:
        shapes = f"{named(left)} {listed(left.shape)} and {named(right)} {listed(right.shape)}"
        raise Refused(f"cannot broadcast {shapes}")
    return [found]


def _prelu(operation: Operation) -> list[Shape]:
    found, data, alpha = _binary(operation), operation.input(0), operation.input(1)
    if found != [data.shape]:
        raise Refused(f"has slopes {named(alpha)} {listed(alpha.shape)}, more than its input {listed(data.shape)}")
    return found


RULES = {
    **dict.fromkeys(_UNARY, _same),
    **dict.fromkeys(_ALONG_LAST_AXIS, _last_axis),
    **dict.fromkeys(_BINARY, _binary),
    "PRELU": _prelu,
}
