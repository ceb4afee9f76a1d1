"""The integer graph: the output of `quantize`, read by every later stage.

A `Graph` is an ordered list of layers over named tensors. Layers carry all arithmetic constants (fixed-point
multipliers, zero points, activation bounds), so that a kernel needs nothing else. On disk it is `graph.json` plus
`constants.npz`; numpy is only imported when constants are used.
"""

from stages.ir.graph.graph import Graph
from stages.ir.layers import Layer, LayerOp, LayerView, Quant, RequestedLayout, Tensor, storage_of
from stages.ir.operators.activations import Activation
from stages.ir.operators.arithmetic import Add, Mul
from stages.ir.operators.concat_and_split import Concatenation
from stages.ir.operators.conversions import Dequantize, Quantize, Requantize
from stages.ir.operators.floats import Float
from stages.ir.operators.movement import Move
from stages.ir.operators.products import Conv2D, DepthwiseConv2D, FullyConnected
from stages.ir.operators.reductions import Mean
from stages.ir.operators.rows import L2Normalization, Softmax
from stages.ir.operators.windows import Pool2D
from stages.ir.tensor_layout import Layout

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
    "LayerOp",
    "LayerView",
    "Layout",
    "Mean",
    "Move",
    "Mul",
    "Pool2D",
    "Quant",
    "Quantize",
    "Requantize",
    "RequestedLayout",
    "Softmax",
    "Tensor",
    "storage_of",
]
