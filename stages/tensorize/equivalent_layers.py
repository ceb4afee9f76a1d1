"""Layers that can be computed in two forms take the one that costs fewer instructions on the target.

    depthwise_conv2d of one input channel    or conv2d: all output channels read the same input
    conv2d whose filters read one channel    or depthwise_conv2d
    pad, then convolutions                   or convolutions with that padding
    a window along the column of an image    or along its row, for images of one column

Costs are those that kernels are chosen by, within the arena's limit where the recipe has one; an accelerator has the
layout and the types that it wants. A form that a rule of the recipe names stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING

from stages.backends.kernels.single_channel import as_depthwise, has_single_channels
from stages.base import StageError
from stages.ir.graph import Conv2D, DepthwiseConv2D, Graph, Layer, LayerOp
from stages.lower.simplify.edits import replaced
from stages.tensorize.padding import readers_of_pad, without_pad
from stages.tensorize.row_windows import is_column_window, with_row_window
from stages.tensorize.sharing import renames_only

if TYPE_CHECKING:
    from stages.ir.arithmetic.fixed_point import Array
    from stages.tensorize.pass_context import PassContext

_WORTH_TURNING = 0.97  # two calls that return an address, and what estimates are off by
_WORTH_EXCHANGING = 0.97  # what estimates are off by

Price = Callable[[Graph, Layer], float]
"""Instructions of a layer of a graph, infinity where nothing can compute it or nobody knows."""


def with_cheapest_equivalents(graph: Graph, context: PassContext) -> Graph:
    """The pass: forms by the costs that kernels are chosen by."""

    def price(one: Graph, layer: Layer) -> float:
        if layer.op.op == "float" or renames_only(one, layer):
            return 0.0
        view, own = one.view(layer), None
        if context.offload is not None and context.config.arena_limit is None:  # with a limit no layout is decided
            own = context.offload.layouts[0]
        try:
            cost = context.choose(view, context.bound(one)).price
        except StageError:  # in this form nothing can compute it; where no form can, the choice of kernels says so
            cost = None
        return min(float("inf") if cost is None else cost, context.cost_on_engine(view, own))

    return cheapest_equivalents(graph, price, lambda one, layer: context.is_ruled(one.view(layer)))


def cheapest_equivalents(graph: Graph, price: Price, is_ruled: Callable[[Graph, Layer], bool]) -> Graph:
    """The graph with each other form that costs no more than the one the model has."""
    for given in graph.layers:
        while (changed := _cheaper_form(graph, given, price, is_ruled)) is not None:
            graph = changed
    return graph


def _cheaper_form(graph: Graph, given: Layer, price: Price, is_ruled: Callable[[Graph, Layer], bool]) -> Graph | None:
    """The graph with another form of a layer, the first that costs no more than the one it has; None for no such.

    `given` is the layer as the model has it.
    """
    layer = next((layer for layer in graph.layers if layer.name == given.name), None)
    if layer is None or is_ruled(graph, layer):
        return None
    for changed, before, after, worth in _other_forms(graph, layer, exchanged=layer.kind != given.kind):
        paid = fsum(price(changed, named(changed, other)) for other in after)
        if paid < float("inf") and paid <= worth * fsum(price(graph, named(graph, other)) for other in before):
            return changed
    return None


def with_all_equivalents(graph: Graph) -> Graph:
    """The graph with all other forms, whatever they cost: for judging choices."""
    return cheapest_equivalents(graph, lambda _graph, _layer: 0.0, lambda _graph, _layer: False)


def named(graph: Graph, name: str) -> Layer:
    """The layer of that name."""
    return next(layer for layer in graph.layers if layer.name == name)


def _other_forms(
    graph: Graph, layer: Layer, *, exchanged: bool
) -> Iterator[tuple[Graph, Sequence[str], Sequence[str], float]]:
    """Another form of the graph, and the names of layers that differ: as they are and as they would be.

    Last, how much of what they cost now it may take to be worth it. A layer that is `exchanged` is another operator
    than in the model, and stays that.
    """
    readers = [reader.name for reader in readers_of_pad(graph, layer)]
    if readers:
        yield without_pad(graph, layer), [layer.name, *readers], readers, 1.0
    if not exchanged and isinstance(layer.op, DepthwiseConv2D) and layer.op.in_channels == 1:
        yield _with_conv2d(graph, layer, layer.op), [layer.name], [layer.name], 1.0
    if not exchanged and isinstance(layer.op, Conv2D) and has_single_channels(layer.op):
        yield _with_depthwise(graph, layer), [layer.name], [layer.name], _WORTH_EXCHANGING
    if is_column_window(graph, layer):
        yield with_row_window(graph, layer), [layer.name], [layer.name], _WORTH_TURNING


def _with_conv2d(graph: Graph, layer: Layer, op: DepthwiseConv2D) -> Graph:
    """(1, kh, kw, O) as (kh, kw, 1, O): HWIO; planar (O, 1, kh, kw) is OIHW as it is."""
    fields = op.model_dump(exclude={"op", "depth_multiplier", "kernel_layout"})
    made = Conv2D(**fields, kernel_layout="HWIO" if op.kernel_layout == "HWC" else "OIHW")
    weights = graph.constants[layer.constants["weights"]]
    if op.kernel_layout == "HWC":
        weights = weights.reshape(*op.kernel, 1, op.out_channels)
    return _with_operator(graph, layer, made, weights)


def _with_depthwise(graph: Graph, layer: Layer) -> Graph:
    """Weights are planar."""
    made = as_depthwise(graph.view(layer))
    return _with_operator(graph, layer, made.op, made.constant("weights"))


def _with_operator(graph: Graph, layer: Layer, op: LayerOp, weights: Array) -> Graph:
    """The layer as another operator on the same tensors; other layers may have its weights too."""
    constants = {role: graph.constants[name] for role, name in layer.constants.items()}
    return replaced(graph, layer, op, layer.inputs, {**constants, "weights": weights})
