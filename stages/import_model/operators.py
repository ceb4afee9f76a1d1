"""Which operators can be imported."""

from __future__ import annotations

# TVM's converter knows some 200 operators, but float arithmetic on quantized integers is one result of asking for the
# wrong one. These are converted as quantize(op(dequantize(x))) or move integers without looking at them.
# fmt: off
QUANTIZED = frozenset({
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE",
    "DIV", "EXPAND_DIMS", "FULLY_CONNECTED", "HARD_SWISH", "L2_NORMALIZATION", "LEAKY_RELU", "LOGISTIC",
    "MAX_POOL_2D", "MAXIMUM", "MEAN", "MINIMUM", "MUL", "PAD", "PADV2", "QUANTIZE", "RELU", "RELU6",
    "RELU_N1_TO_1", "RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SLICE", "SOFTMAX",
    "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "SUB", "SUM", "TANH", "TRANSPOSE",
})
FLOAT = QUANTIZED | frozenset({
    "ABS", "COS", "ELU", "EXP", "FLOOR", "LOG", "LOG_SOFTMAX", "NEG", "PRELU", "REDUCE_MAX", "REDUCE_MIN",
    "RSQRT", "SIN", "SQRT", "SQUARE", "SQUARED_DIFFERENCE",
})
# fmt: on

_CONTROL_FLOW = frozenset({"CALL", "IF", "STABLEHLO_CASE", "STABLEHLO_IF", "STABLEHLO_WHILE", "WHILE"})
_STATE = frozenset({
    "ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    "READ_VARIABLE", "VAR_HANDLE",
})  # fmt: skip


def why_not(op: str) -> str:
    """What to say of an operator that is not among these: `is control flow, which is not supported`."""
    if op in _CONTROL_FLOW:
        return "is control flow, which is not supported"
    if op in _STATE:
        return "keeps state from one inference to the next, which is not supported"
    if op.startswith("CUSTOM:"):
        return "is a custom operator: the file does not say what it computes"
    return "is not supported"
