"""PAD in front of convolutions becomes their own padding: nothing is copied, and the arena holds no padded image.

Exporters write the padding of a strided convolution as an operator of its own (Keras' ZeroPadding2D). Where it pads
rows and columns with the zero point, it is what the convolution does at its borders anyway.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stages.graph import Conv2D, DepthwiseConv2D, Graph, Layer, Tensor

Padding = tuple[int, int, int, int]


def fold_padding(graph: Graph) -> Graph:
    """The graph without the PAD layers that only convolutions read, their tensors gone and layers numbered anew."""
    folded: dict[str, Layer] = {}  # by output
    for layer in graph.layers:
        if layer.op.op == "move" and layer.op.kind == "pad" and layer.outputs[0] not in graph.outputs:
            readers = [reader for reader in graph.layers if layer.outputs[0] in reader.inputs]
            if readers and all(_folded(graph, layer, reader) is not None for reader in readers):
                folded[layer.outputs[0]] = layer
    if not folded:
        return graph
    layers: list[Layer] = []
    for layer in graph.layers:
        if layer.outputs[0] in folded:
            continue
        pad = folded.get(layer.inputs[0]) if layer.inputs else None
        if pad is not None:
            op = layer.op.model_copy(update={"padding": _folded(graph, pad, layer)})
            layer = layer.model_copy(update={"op": op, "inputs": pad.inputs})
        layers.append(layer.model_copy(update={"index": len(layers)}))
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in folded}
    return replace(graph, tensors=tensors, layers=layers)


def _folded(graph: Graph, pad: Layer, reader: Layer) -> Padding | None:
    """The reader's padding (top, left, bottom, right) with the pad's, None where it cannot have it.

    No window may lie in the padding alone: kernels need not expect that. Rows and columns at the end that no window
    reaches are left out.
    """
    op, params = reader.op, _params(pad)
    x, padded = graph.tensors[pad.inputs[0]], graph.tensors[pad.outputs[0]]
    if not isinstance(op, Conv2D | DepthwiseConv2D) or len(x.shape) != 4 or _planar(x) != _planar(padded):
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


def _params(pad: Layer) -> dict[str, Any]:
    op: Any = pad.op
    return dict(op.params)


def _planar(tensor: Tensor) -> bool:
    return tensor.layout == "NCHW"
