"""Errors that name an operator of the file."""

from __future__ import annotations

from stages.messages.naming import sides
from stages.messages.operator_error import OperatorError
from stages.models.tflite_reader import ModelInfo, OperatorInfo


def operator_error(operator: OperatorInfo, info: ModelInfo, what: str, hint: str = "") -> OperatorError:
    """operator 3 (CONV_2D) `what`, with the names of its tensors on a second line."""
    name = info.tensors[operator.outputs[0]].name if operator.outputs else ""
    return OperatorError(operator.index, operator.op, name, what, sides(operator, info), hint=hint)
