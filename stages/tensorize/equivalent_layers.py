"""Replace layers with equivalent ones that cost fewer instructions on the target.

    depthwise_conv2d of few input channels   or conv2d: weights of the other channels are zero
    conv2d whose filters read one channel    or depthwise_conv2d
    pad, then convolutions                   or convolutions with that padding
    depthwise convolutions of neighbours      or one, with zero weights, if a concatenation joins their channels
    conv2d over a whole image                or fully_connected
    window along the column of an image      or along its row, for images of one column

Costs are as in kernel selection, within the recipe's arena limit. An accelerator gets its own layout and types.
Layers that a rule of the recipe matches stay.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import Any, cast

import numpy as np

from stages.backends.kernels.single_channel import as_depthwise, has_single_channels
from stages.base import StageError
from stages.ir.arrays import Array
from stages.ir.graph import Conv2D, DepthwiseConv2D, FullyConnected, Graph, Layer, LayerOp, Layout, Move, Tensor
from stages.ir.operators.floats import Float
from stages.lower.simplify.edits import numbered, replaced, unused
from stages.tensorize.parallel_depthwise import merged_depthwise
from stages.tensorize.pass_context import PassContext
from stages.tensorize.row_windows import is_column_window, with_row_window
from stages.tensorize.sharing import renames_only

_WORTH_TURNING = 0.97  # pays for two calls that return an address, and for errors of estimates
_WORTH_EXCHANGING = 0.97  # errors of estimates
_FEW_CHANNELS = 4  # of a depthwise layer: more have too many zeros as a conv2d

Price = Callable[[Graph, Layer], float]
"""Instructions of a layer of a graph; infinity if no kernel can compute it or the cost is unknown."""


def with_cheapest_equivalents(graph: Graph, context: PassContext) -> Graph:
    """Return the graph with the cheapest equivalents, by the costs of kernel selection."""

    def price(candidate: Graph, layer: Layer) -> float:
        if isinstance(layer.op, Float) or renames_only(candidate, layer):
            return 0.0
        view, layout = candidate.view(layer), None
        if context.offload is not None and context.config.arena_limit is None:  # with a limit no layout is decided
            layout = context.offload.layouts[0]
        try:
            cost = context.choose(view, context.bound(candidate)).price
        except StageError:  # no kernel for this form; if none fits any form, kernel selection reports it
            cost = None
        return min(float("inf") if cost is None else cost, context.cost_on_engine(view, layout))

    return cheapest_equivalents(graph, price, lambda candidate, layer: context.is_ruled(candidate.view(layer)))


def cheapest_equivalents(graph: Graph, price: Price, is_ruled: Callable[[Graph, Layer], bool]) -> Graph:
    """Replace each layer by an equivalent that costs no more, until there is none."""
    for original in graph.layers:
        layer = next((layer for layer in graph.layers if layer.name == original.name), None)
        merged = None if layer is None else merged_depthwise(graph, layer)
        if merged is None or any(is_ruled(graph, named(graph, name)) for name in (original.name, *merged.before)):
            continue
        if _is_cheaper(merged.graph, merged.after, graph, merged.before, price, _WORTH_EXCHANGING):
            graph = merged.graph
    for original in graph.layers:
        while (changed := _cheaper_equivalent(graph, original, price, is_ruled)) is not None:
            graph = changed
    return graph


def _is_cheaper(
    changed: Graph, after: Sequence[str], graph: Graph, before: Sequence[str], price: Price, worth: float
) -> bool:
    """Return whether `after` can be computed and costs at most `worth` times `before`."""
    paid = fsum(price(changed, named(changed, name)) for name in after)
    return paid < float("inf") and paid <= worth * fsum(price(graph, named(graph, name)) for name in before)


def _cheaper_equivalent(
    graph: Graph, original: Layer, price: Price, is_ruled: Callable[[Graph, Layer], bool]
) -> Graph | None:
    """Return the graph with the first equivalent of a layer that costs no more, or None.

    `original` is the layer in the model.
    """
    layer = next((layer for layer in graph.layers if layer.name == original.name), None)
    if layer is None or is_ruled(graph, layer):
        return None
    for changed, before, after, worth in _equivalents(graph, layer, exchanged=layer.kind != original.kind):
        if _is_cheaper(changed, after, graph, before, price, worth):
            return changed
    return None


def with_all_equivalents(graph: Graph) -> Graph:
    """Return the graph with all layers replaced by equivalents at any cost, for tests."""
    return cheapest_equivalents(graph, lambda _graph, _layer: 0.0, lambda _graph, _layer: False)


def named(graph: Graph, name: str) -> Layer:
    """Return the layer of that name."""
    return next(layer for layer in graph.layers if layer.name == name)


def _equivalents(
    graph: Graph, layer: Layer, *, exchanged: bool
) -> Iterator[tuple[Graph, Sequence[str], Sequence[str], float]]:
    """Yield graphs with an equivalent of a layer: graph, names before, names after, worth.

    The names are the layers that differ. The new ones must cost at most `worth` times the cost of the old ones. A layer
    that is `exchanged` already has another operator than in the model, and keeps it.
    """
    readers = [reader.name for reader in readers_of_pad(graph, layer)]
    if readers:
        yield without_pad(graph, layer), [layer.name, *readers], readers, 1.0
    if not exchanged and isinstance(layer.op, DepthwiseConv2D) and layer.op.in_channels <= _FEW_CHANNELS:
        yield _with_conv2d(graph, layer, layer.op), [layer.name], [layer.name], 1.0
    if not exchanged and isinstance(layer.op, Conv2D) and has_single_channels(layer.op):
        yield _with_depthwise(graph, layer), [layer.name], [layer.name], _WORTH_EXCHANGING
    if not exchanged and is_one_pixel(graph, layer):
        yield with_fully_connected(graph, layer), [layer.name], [layer.name], _WORTH_EXCHANGING
    if is_column_window(graph, layer):
        yield with_row_window(graph, layer), [layer.name], [layer.name], _WORTH_TURNING


def _with_conv2d(graph: Graph, layer: Layer, op: DepthwiseConv2D) -> Graph:
    """Return the graph with the depthwise_conv2d as a conv2d.

    Weights (1, kh, kw, O), the order of the model's layers, become HWIO (kh, kw, I, O): output channel o keeps its own
    for input channel o // depth_multiplier; the others equal the zero point.
    """
    conv2d = Conv2D(**op.model_dump(exclude={"op", "depth_multiplier", "kernel_layout"}), kernel_layout="HWIO")
    weights, outputs = graph.constants[layer.constants["weights"]], np.arange(op.out_channels)
    dense = np.full((*op.kernel, op.in_channels, op.out_channels), op.weight_zero_point, weights.dtype)
    dense[:, :, outputs // op.depth_multiplier, outputs] = weights[0]
    return _with_operator(graph, layer, conv2d, dense)


def _with_depthwise(graph: Graph, layer: Layer) -> Graph:
    """Return the graph with the conv2d as a depthwise_conv2d with planar weights."""
    depthwise = as_depthwise(graph.view(layer))
    return _with_operator(graph, layer, depthwise.op, depthwise.constant("weights"))


def _with_operator(graph: Graph, layer: Layer, op: LayerOp, weights: Array) -> Graph:
    """Return the graph with another operator for the layer, on the same tensors.

    The weights are copied, because other layers may share them.
    """
    constants = {role: graph.constants[name] for role, name in layer.constants.items()}
    return replaced(graph, layer, op, layer.inputs, {**constants, "weights": weights})


# Turn a convolution whose window is the whole image into FULLY_CONNECTED. Streaming networks have such layers: each run
# computes one pixel.
_SHARED = ("input_zero_point", "weight_zero_point", "output_zero_point", "act_min", "act_max", "rounding")


def is_one_pixel(graph: Graph, layer: Layer) -> bool:
    """Return whether the only window of a conv2d is its whole input image."""
    op, x = layer.op, graph.tensors[layer.inputs[0]] if layer.inputs else None
    if not isinstance(op, Conv2D) or x is None or op.groups != 1 or any(op.padding) or layer.wanted is not None:
        return False
    out = graph.tensors[layer.outputs[0]]
    return x.shape[1:3] == op.kernel and out.shape[1:3] == (1, 1) and x.lies_as("NHWC") and out.lies_as("NHWC")


def with_fully_connected(graph: Graph, layer: Layer) -> Graph:
    """Return the graph with the conv2d as FULLY_CONNECTED.

    An image of several pixels is reshaped to a row.
    """
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


# Fold PAD into the padding of convolutions: no copy, and no padded image in the arena. Exporters write the padding of a
# strided convolution as a separate operator (Keras' ZeroPadding2D). Padding of rows and columns with the zero point
# equals the convolution's own padding.
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
