"""Size figures of a TFLite model, from its tensors' shapes."""

from __future__ import annotations

import math

from stages.models.tflite_reader import ModelInfo, OperatorInfo

_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def operator_macs(info: ModelInfo, operator: OperatorInfo) -> int:
    """Multiply-accumulates of one operator for one inference; 0 for all but the convolutions and FULLY_CONNECTED.

    Each output element costs the kernel's size: KH * KW * I for CONV_2D (weights OHWI; I is per group), KH * KW for
    DEPTHWISE_CONV_2D (1HWC), the depth for FULLY_CONNECTED.
    """
    if operator.op not in _WEIGHTED:
        return 0
    weights = info.tensors[operator.inputs[1]].shape
    outputs = math.prod(info.tensors[operator.outputs[0]].shape)
    return outputs * math.prod(weights[1:3] if operator.op == "DEPTHWISE_CONV_2D" else weights[1:])


def macs(info: ModelInfo) -> int:
    """Multiply-accumulates of the whole model."""
    return sum(operator_macs(info, operator) for operator in info.operators)


def parameters(info: ModelInfo) -> int:
    """Trained values: elements of all weights and biases; a tensor used twice counts once."""
    used = {index for op in info.operators if op.op in _WEIGHTED for index in op.inputs[1:] if index >= 0}
    return sum(math.prod(info.tensors[index].shape) for index in used if info.tensors[index].data is not None)
