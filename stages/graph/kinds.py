"""The names that rules and reports give to operators: those of the TFLite schema, and what the graph makes of them."""

from __future__ import annotations

from typing import get_args

from stages.graph.ops import Float, Op

_KINDS = {
    "AVERAGE_POOL_2D": "avg_pool2d",
    "MAX_POOL_2D": "max_pool2d",
    "CONV_2D": "conv2d",
    "DEPTHWISE_CONV_2D": "depthwise_conv2d",
}


# What `Move.kind` and `Activation.function` can be: neither is an operator of the graph by itself.
MOVES = frozenset({
    "layout", "pad", "reshape", "resize_nearest_neighbor", "slice", "split", "squeeze", "strided_slice", "transpose",
})  # fmt: skip
FUNCTIONS = frozenset({
    "hard_swish", "leaky_relu", "logistic", "relu", "relu6", "relu_n1_to_1", "requantize", "tanh",
})  # fmt: skip


def kernel_kinds() -> frozenset[str]:
    """All that a layer for a kernel can be called in a rule: its operator in the graph, or its `Layer.kind`."""
    union = get_args(get_args(Op)[0])
    operators = {name for op in union if op is not Float for name in get_args(op.model_fields["op"].annotation)}
    return MOVES | FUNCTIONS | operators


def kind_of(op: str) -> str:
    """CONV_2D is conv2d, LEAKY_RELU is leaky_relu."""
    return _KINDS.get(op, op.lower())
