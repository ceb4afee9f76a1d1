"""The pass that places tensors inside others, which saves copies."""

from collections.abc import Mapping
from dataclasses import replace

from stages.backends.kernels.copies import parts
from stages.ir.operators.concat_and_split import Concatenation
from stages.ir.operators.floats import Float
from stages.tensorize.choices import Chosen
from stages.tensorize.costs import estimated
from stages.tensorize.in_place import overlaid
from stages.tensorize.pass_context import PassContext
from stages.tensorize.sharing import renames_only, share


def place_parts(chosen: Chosen, context: PassContext) -> Chosen:
    """Return the graph with tensors placed inside others, and the layers that still compute.

    See `stages.tensorize.sharing`.
    """
    before, choices = chosen.graph, chosen.choices
    over = overlaid(before, ((index, choice.kernel) for index, choice in choices.items()))
    graph = share(before, lambda: scratch_of_layers(chosen, context), over)
    remaining = {}
    for index, choice in choices.items():
        layer = graph.layers[index]
        if renames_only(graph, layer):
            continue
        if isinstance(layer.op, Concatenation) and parts(graph.view(layer)) != parts(before.view(layer)):
            cost = estimated(choice.kernel, graph.view(layer), choice.params, context.target)
            choice = replace(choice, cost=cost, cost_source="estimated")
        remaining[index] = choice
    return replace(chosen, graph=graph, choices=remaining)


def scratch_of_layers(chosen: Chosen, context: PassContext) -> dict[int, Mapping[str, int]]:
    """Return scratch bytes by name for each layer, as emit plans them."""
    graph, lowerings = chosen.graph, context.lowerings
    lowered = {}
    for layer in graph.layers:
        if isinstance(layer.op, Float):
            lowered[layer.index] = lowerings.of_float(layer)
        elif (choice := chosen.choices.get(layer.index)) is not None:
            lowered[layer.index] = lowerings.of_kernel(graph.view(layer), choice.kernel, choice.params)
    return dict(zip(lowered, lowerings.scratch(list(lowered.values())), strict=True))
