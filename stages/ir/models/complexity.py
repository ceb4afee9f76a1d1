"""Size figures of a TFLite model, from its tensors' shapes."""

from __future__ import annotations

import math

from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.ir.operators.table import OPERATORS


def operator_macs(info: ModelInfo, operator: OperatorInfo) -> int:
    """Multiply-accumulates of one inference, padding included, as papers count them; 0 without weights."""
    each = OPERATORS[operator.op].macs if operator.op in OPERATORS else None
    if each is None:
        return 0
    outputs = math.prod(info.tensors[operator.outputs[0]].shape)
    return outputs * each(info.tensors[operator.inputs[1]].shape)


def macs(info: ModelInfo) -> int:
    """Multiply-accumulates of the whole model."""
    return sum(operator_macs(info, operator) for operator in info.operators)
