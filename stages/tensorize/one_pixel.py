"""Turn a convolution whose window is the whole image into FULLY_CONNECTED.

Streaming networks have such layers: each run computes one pixel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from stages.ir.graph import Conv2D, FullyConnected, Graph, Layer, Layout, Move
from stages.lower.simplify.edits import numbered, replaced, unused

_SHARED = ("input_zero_point", "weight_zero_point", "output_zero_point", "act_min", "act_max", "rounding")


def is_one_pixel(graph: Graph, layer: Layer) -> bool:
    """Return whether the only window of a conv2d is its whole input image."""
    op, x = layer.op, graph.tensors[layer.inputs[0]] if layer.inputs else None
    if not isinstance(op, Conv2D) or x is None or op.groups != 1 or any(op.padding) or layer.wanted is not None:
        return False
    out = graph.tensors[layer.outputs[0]]
    return x.shape[1:3] == op.kernel and out.shape[1:3] == (1, 1) and x.lies_as("NHWC") and out.lies_as("NHWC")


def with_fully_connected(graph: Graph, layer: Layer) -> Graph:
    """Return the graph with the conv2d as FULLY_CONNECTED; an image of several pixels is reshaped to a row."""
    op, x = cast("Conv2D", layer.op), graph.tensors[layer.inputs[0]]
    depth = op.kernel[0] * op.kernel[1] * op.in_channels
    constants = {role: graph.constants[name] for role, name in layer.constants.items()}
    weights = constants["weights"].transpose([op.kernel_layout.index(axis) for axis in "OHWI"])
    constants["weights"] = weights.reshape(op.out_channels, depth)
    row = x
    if op.kernel != (1, 1):
        name = unused(graph.tensors, f"{layer.name}/flat")
        fields = {"name": name, "shape": (x.shape[0], depth), "layout": Layout(""), "alias_of": x.name}
        row = x.model_copy(update={**fields, "offset": 0, "tflite_index": None, "channels": None})
        reshape = Layer(index=0, name=row.name, op=Move(kind="reshape"), inputs=(x.name,), outputs=(row.name,))
        layers = [part for other in graph.layers for part in ([reshape, layer] if other is layer else [other])]
        graph = numbered(replace(graph, layers=layers, tensors={**graph.tensors, row.name: row}))
        layer = next(other for other in graph.layers if other.name == layer.name)
    shared = {name: getattr(op, name) for name in _SHARED}
    dense = FullyConnected(batch=x.shape[0], depth=depth, units=op.out_channels, **shared)
    return replaced(graph, layer, dense, (row.name,), constants)
