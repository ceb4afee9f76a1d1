"""The integer graph: what `quantize` makes of the Relax module and every later stage reads.

A `Graph` is an ordered list of layers over named tensors. Layers carry all arithmetic constants (fixed-point
multipliers, zero points, activation bounds), so that a kernel needs nothing else. On disk it is `graph.json` plus
`constants.npz`; numpy is only imported when constants are touched.
"""

from stages.graph.graph import Graph, Layer, LayerView
from stages.graph.ops import (
    Activation,
    Add,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Dequantize,
    Float,
    FullyConnected,
    L2Normalization,
    Mean,
    Move,
    Mul,
    Op,
    Pool2D,
    Quantize,
    Requantize,
    Softmax,
)
from stages.graph.tensor import Quant, Tensor, place

__all__ = [
    "Activation",
    "Add",
    "Concatenation",
    "Conv2D",
    "DepthwiseConv2D",
    "Dequantize",
    "Float",
    "FullyConnected",
    "Graph",
    "L2Normalization",
    "Layer",
    "LayerView",
    "Mean",
    "Move",
    "Mul",
    "Op",
    "Pool2D",
    "Quant",
    "Quantize",
    "Requantize",
    "Softmax",
    "Tensor",
    "place",
]
