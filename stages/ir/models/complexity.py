"""Size figures of a TFLite model, from its tensors' shapes."""

import math

from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.operators.table import OPERATORS


def operator_macs(info: ModelInfo, operator: OperatorInfo) -> int:
    """Return the multiply-accumulates of one inference; 0 without weights.

    Padding is included, as papers count them.
    """
    macs_per_output = OPERATORS[operator.op].weights.macs if operator.op in OPERATORS else None
    if macs_per_output is None:
        return 0
    outputs = math.prod(info.tensors[operator.outputs[0]].shape)
    return outputs * macs_per_output(info.tensors[operator.inputs[1]].shape)


def macs(info: ModelInfo) -> int:
    """Return the multiply-accumulates of the whole model."""
    return sum(operator_macs(info, operator) for operator in info.operators)
