"""The names that rules and reports give to operators of the TFLite schema."""

from __future__ import annotations

_KINDS = {
    "AVERAGE_POOL_2D": "avg_pool2d",
    "MAX_POOL_2D": "max_pool2d",
    "CONV_2D": "conv2d",
    "DEPTHWISE_CONV_2D": "depthwise_conv2d",
}


def kind_of(op: str) -> str:
    """CONV_2D is conv2d, LEAKY_RELU is leaky_relu."""
    return _KINDS.get(op, op.lower())
