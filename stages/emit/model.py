"""The model as the templates see it: where each tensor, constant and scratch buffer lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.arena.liveness import scratch_name
from stages.graph import place

if TYPE_CHECKING:
    from stages.arena import Liveness, Plan
    from stages.emit.functions import LayerFunction
    from stages.emit.weights import Weights
    from stages.graph import Graph
    from stages.tensorize.build import Tensorized


class Model:
    """All that is known about the model when its files are written."""

    def __init__(
        self,
        graph: Graph,
        made: Tensorized,
        functions: dict[int, LayerFunction],
        lives: Liveness,
        arena: Plan,
        weights: Weights,
    ) -> None:
        self.graph = graph
        self.plan = made.plan
        self.functions = functions
        self.lives = lives
        self.arena = arena
        self.weights = weights

    def offset(self, tensor: str) -> int:
        """Bytes from the arena's start. Raises KeyError for a constant tensor."""
        return self.arena.offsets[self.lives.home[tensor]] + self.lives.offset[tensor]

    def argument(self, layer: int, role: str) -> str:
        """What model.c passes for a parameter: `at(64)` or `weight(128)`."""
        kind, _, key = role.partition(":")
        entry = self.plan.layers[layer]
        if kind == "scratch":
            return f"at({self.arena.offsets[scratch_name(layer, key)]})"
        if kind == "constant":
            return f"weight({self.weights.offsets[entry.constants[key]]})"
        names = self.graph.layers[layer].inputs if kind == "input" else self.graph.layers[layer].outputs
        name = names[int(key)]
        if name in self.lives.home:
            return f"at({self.offset(name)})"
        root, start = place(self.graph.tensors, name)
        return f"weight({self.weights.offsets[root] + start})"
