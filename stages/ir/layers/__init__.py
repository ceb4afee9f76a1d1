"""Layers of the integer graph: tensors, layers, and base classes of arithmetic.

stages.ir.operators has the classes of the operators, stages.ir.graph the graph.
"""

from stages.ir.arrays import Array
from stages.ir.layers.clamped import Clamped, Window, channel_constants, is_known_by_channel, per_channel
from stages.ir.layers.layer import Layer, LayerOp, LayerView, Narrowed, RequestedLayout, Shifted, every_channel
from stages.ir.layers.rounding import ROUNDINGS, Rounding
from stages.ir.layers.tensor import ITEM_BYTES, DType, Quant, Tensor, storage_of

__all__ = [
    "ITEM_BYTES",
    "ROUNDINGS",
    "Array",
    "Clamped",
    "DType",
    "Layer",
    "LayerOp",
    "LayerView",
    "Narrowed",
    "Quant",
    "RequestedLayout",
    "Rounding",
    "Shifted",
    "Tensor",
    "Window",
    "channel_constants",
    "every_channel",
    "is_known_by_channel",
    "per_channel",
    "storage_of",
]
