"""The pass that plans the accelerator's memory and a program for each of its layers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stages.ir.operators.floats import Float
from stages.lower.offload.plan import Network, plan
from stages.tensorize.float_cost import float_cost
from stages.tensorize.in_place import overlaid

if TYPE_CHECKING:
    from stages.tensorize.choices import Chosen
    from stages.tensorize.pass_context import PassContext


def plan_programs(chosen: Chosen, context: PassContext) -> Chosen:
    """Add programs to the accelerator layers' choices, and the timeline of the network.

    Return the choices.
    """
    kernel = context.offload
    if kernel is None:
        return chosen
    graph = chosen.graph
    offloaded = [index for index, choice in chosen.choices.items() if choice.kernel is kernel]
    instructions = {i: float(c.cost or 0) for i, c in chosen.choices.items() if c.kernel is not kernel}
    for layer in graph.layers:
        if isinstance(layer.op, Float):
            functions = context.lowerings.of_float(layer).functions.values()
            instructions[layer.index] = float_cost(functions, context.target)
    over = overlaid(graph, ((index, choice.kernel) for index, choice in chosen.choices.items()))
    return replace(chosen, offload=plan(Network(graph, offloaded, instructions, over), kernel))
