"""PRELU: x where x >= 0, else slope * x; the slopes broadcast."""

from __future__ import annotations

from stages.models.naming import named
from stages.operators.arithmetic import binary_shape
from stages.operators.declaration import FLOAT, Operator
from stages.operators.operation import Operation, Refused, Shape, listed


def _prelu(operation: Operation) -> list[Shape]:
    found, data, alpha = binary_shape(operation), operation.input(0), operation.input(1)
    if found != [data.shape]:
        raise Refused(f"has slopes {named(alpha)} {listed(alpha.shape)}, more than its input {listed(data.shape)}")
    return found


OPERATORS = (Operator("PRELU", _prelu, (2, 2), types=FLOAT, quantized=False),)
