"""Fold PAD into the padding of convolutions: no copy, and no padded image in the arena.

Exporters write the padding of a strided convolution as a separate operator (Keras' ZeroPadding2D). Padding of rows
and columns with the zero point equals the convolution's own padding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stages.ir.graph import Conv2D, DepthwiseConv2D, Graph, Layer, Tensor
from stages.ir.operators.movement import Move

Padding = tuple[int, int, int, int]


def readers_of_pad(graph: Graph, layer: Layer) -> list[Layer]:
    """Return the convolutions into which a PAD can be folded; empty if any reader prevents it."""
    op: Any = layer.op
    if not isinstance(op, Move) or op.kind != "pad" or layer.outputs[0] in graph.outputs:
        return []
    readers = [reader for reader in graph.layers if layer.outputs[0] in reader.inputs]
    return readers if all(_folded(graph, layer, reader) is not None for reader in readers) else []


def without_pad(graph: Graph, pad: Layer) -> Graph:
    """Return the graph with the PAD folded into its readers, and its layers renumbered."""
    layers: list[Layer] = []
    for layer in graph.layers:
        if layer is pad:
            continue
        if pad.outputs[0] in layer.inputs:
            op = layer.op.model_copy(update={"padding": _folded(graph, pad, layer)})
            layer = layer.model_copy(update={"op": op, "inputs": pad.inputs})
        layers.append(layer.model_copy(update={"index": len(layers)}))
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name != pad.outputs[0]}
    return replace(graph, tensors=tensors, layers=layers)


def _folded(graph: Graph, pad: Layer, reader: Layer) -> Padding | None:
    """Return the reader's padding (top, left, bottom, right) including the PAD's, or None.

    No window may lie in the padding alone, which kernels do not expect. Rows and columns at the end that no window
    reaches are left out.
    """
    op, params = reader.op, dict(getattr(pad.op, "params", {}))
    x, padded = graph.tensors[pad.inputs[0]], graph.tensors[pad.outputs[0]]
    if not isinstance(op, Conv2D | DepthwiseConv2D) or len(x.shape) != 4 or _order(x) != _order(padded):
        return None
    before, after = params["before"], params["after"]
    if any((before[0], before[3], after[0], after[3])) or params["value"] != op.input_zero_point:
        return None
    out = graph.tensors[reader.outputs[0]]
    first, last = [], []
    for axis in (0, 1):
        extent = (op.kernel[axis] - 1) * op.dilation[axis] + 1
        start = before[1 + axis] + op.padding[axis]
        end = max(0, (out.shape[1 + axis] - 1) * op.stride[axis] + extent - start - x.shape[1 + axis])
        if max(start, end) >= extent:
            return None
        first.append(start)
        last.append(end)
    return first[0], first[1], last[0], last[1]


def _order(tensor: Tensor) -> str:
    return tensor.layout or "NHWC"
