"""Size figures of a TFLite model, from its tensors' shapes."""

from __future__ import annotations

import math

from stages.models.tflite_reader import ModelInfo, OperatorInfo
from stages.operators.table import OPERATORS


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


def parameters(info: ModelInfo) -> int:
    """Trained values: elements of all weights and biases; a tensor used twice counts once."""
    weighted = {name for name, operator in OPERATORS.items() if operator.macs is not None}
    used = {index for op in info.operators if op.op in weighted for index in op.inputs[1:] if index >= 0}
    return sum(math.prod(info.tensors[index].shape) for index in used if info.tensors[index].data is not None)
