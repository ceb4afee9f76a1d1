"""The pass that gives layers the arithmetic of their engine where it differs from LiteRT's.

This changes results, so only a recipe can ask for it (`requantize: engine`). The graph of tensorize then has the
layers as they are computed. Verify checks the firmware against it, and reports its distance from LiteRT.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stages.tensorize.plan import Distance

if TYPE_CHECKING:
    from stages.tensorize.choices import Chosen
    from stages.tensorize.pass_context import PassContext


def with_engine_arithmetic(chosen: Chosen, context: PassContext) -> Chosen:
    """Return the choices with the engine's arithmetic and its distance from the model's."""
    kernel = context.offload
    if kernel is None:
        return chosen
    graph, choices, layers = chosen.graph, dict(chosen.choices), list(chosen.graph.layers)
    constants = dict(graph.constants)
    for index, choice in chosen.choices.items():
        arithmetic = kernel.machine.accelerator.own(graph.view(layers[index])) if choice.kernel is kernel else None
        if arithmetic is None:
            continue
        names = {role: f"{index:03d}/own/{role}" for role in arithmetic.constants}
        constants.update({names[role]: array for role, array in arithmetic.constants.items()})
        fields = {"op": arithmetic.op, "constants": {**layers[index].constants, **names}}
        layers[index] = layers[index].model_copy(update=fields)
        distance = Distance(reachable=arithmetic.reachable, differing=arithmetic.differing, largest=arithmetic.largest)
        choices[index] = replace(choice, distance=distance)
    return replace(chosen, graph=replace(graph, layers=layers, constants=constants), choices=choices)
