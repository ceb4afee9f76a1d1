"""Errors about an operator of the file."""

from __future__ import annotations

from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.naming import tensor_names
from stages.support.messages.operator_error import OperatorError


def operator_error(operator: OperatorInfo, info: ModelInfo, what: str, hint: str = "") -> OperatorError:
    """Return the error `operator 3 (CONV_2D) WHAT`, with its tensor names on a second line."""
    name = info.tensors[operator.outputs[0]].name if operator.outputs else ""
    return OperatorError(operator.index, operator.op, name, what, tensor_names(operator, info), hint=hint)
