"""The pass that gives layers the arithmetic of the engine that computes them, where that is not LiteRT's.

It changes what the network means, which only a recipe can ask for (`requantize: engine`). The graph that tensorize
leaves has the layers as they are computed; verify holds the firmware to it, and says how far it is from LiteRT.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stages.tensorize.plan import Distance

if TYPE_CHECKING:
    from stages.tensorize.choices import Chosen
    from stages.tensorize.pass_context import PassContext


def with_engine_arithmetic(chosen: Chosen, context: PassContext) -> Chosen:
    """The layers of the target's accelerator as it computes them, and how far that is from what the model says."""
    kernel = context.offload
    if kernel is None:
        return chosen
    graph, choices, layers = chosen.graph, dict(chosen.choices), list(chosen.graph.layers)
    constants = dict(graph.constants)
    for index, choice in chosen.choices.items():
        own = kernel.machine.accelerator.own(graph.view(layers[index])) if choice.kernel is kernel else None
        if own is None:
            continue
        names = {role: f"{index:03d}/own/{role}" for role in own.constants}
        constants.update({names[role]: array for role, array in own.constants.items()})
        fields = {"op": own.op, "constants": {**layers[index].constants, **names}}
        layers[index] = layers[index].model_copy(update=fields)
        distance = Distance(reachable=own.reachable, differing=own.differing, largest=own.largest)
        choices[index] = replace(choice, distance=distance)
    return replace(chosen, graph=replace(graph, layers=layers, constants=constants), choices=choices)
