"""The model as the templates see it: where each tensor, constant and scratch buffer lies, and what model.c calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.arena.liveness import scratch_name
from stages.graph import place

if TYPE_CHECKING:
    from stages.arena import Buffer, Liveness, Plan
    from stages.codegen.layers import LayerFunction
    from stages.emit.weights import Weights
    from stages.graph import Graph
    from stages.tensorize.artifact import Tensorized


@dataclass(frozen=True)
class Place:
    """An enumerator of model.c: its name, the offset it stands for, what lies there ('' if the name tells) and when."""

    name: str
    offset: int
    what: str = ""
    when: str = ""


class Model:
    """All that is known about the model when its files are written.

    `in_arena` and `in_weights` are the places that were asked for by `port` and `argument`, by what lies there.
    """

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
        self.in_arena: dict[str, Place] = {}
        self.in_weights: dict[str, Place] = {}
        self._buffers = {buffer.name: buffer for buffer in arena.buffers}
        self._names = _tensor_names(graph)

    def offset(self, tensor: str) -> int:
        """Bytes from the arena's start. Raises KeyError for a constant tensor."""
        return self.arena.offsets[self.lives.home[tensor]] + self.lives.offset[tensor]

    def port(self, tensor: str) -> str:
        """The place of an input or output of the model: `at(INPUT_0)`."""
        return self._at(tensor)

    def argument(self, layer: int, role: str) -> str:
        """What model.c passes for a parameter: `at(LAYER_003_OUTPUT)` or `weight(LAYER_003_BIAS)`."""
        kind, _, key = role.partition(":")
        entry = self.plan.layers[layer]
        if kind == "scratch":
            buffer = self._buffers[scratch_name(layer, key)]
            name = f"LAYER_{layer:03d}_{_word(key)}"
            self.in_arena[buffer.name] = Place(name, self.arena.offsets[buffer.name], f"scratch, {buffer.bytes} bytes")
            return f"at({name})"
        if kind == "constant":
            constant, name = entry.constants[key], f"LAYER_{layer:03d}_{_word(key)}"
            self.in_weights[constant] = Place(name, self.weights.offsets[constant])
            return f"weight({name})"
        names = self.graph.layers[layer].inputs if kind == "input" else self.graph.layers[layer].outputs
        tensor = names[int(key)]
        if tensor in self.lives.home:
            return self._at(tensor)
        root, start = place(self.graph.tensors, tensor)
        name = self._names[tensor]
        self.in_weights[tensor] = Place(name, self.weights.offsets[root] + start, tensor)
        return f"weight({name})"

    def _at(self, tensor: str) -> str:
        buffer = self._buffers[self.lives.home[tensor]]
        self.in_arena[tensor] = Place(self._names[tensor], self.offset(tensor), tensor, _life(buffer))
        return f"at({self._names[tensor]})"


def _life(buffer: Buffer) -> str:
    """`, layers 3 to 5`: while its memory is in use."""
    last = f" to {buffer.last}" if buffer.last > buffer.first else ""
    return f", layer{'s' if last else ''} {buffer.first}{last}"


def _tensor_names(graph: Graph) -> dict[str, str]:
    """INPUT_0, LAYER_003_OUTPUT, LAYER_003_OUTPUT_1 for the second of several; CONSTANT_0 for what no layer writes."""
    names = {tensor: f"INPUT_{number}" for number, tensor in enumerate(graph.inputs)}
    for layer in graph.layers:
        for number, tensor in enumerate(layer.outputs):
            names[tensor] = f"LAYER_{layer.index:03d}_OUTPUT{f'_{number}' if number else ''}"
    others = [tensor for tensor in graph.tensors if tensor not in names]
    return names | {tensor: f"CONSTANT_{number}" for number, tensor in enumerate(others)}


def _word(key: str) -> str:
    """A role's key as part of an enumerator."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in key).upper()
