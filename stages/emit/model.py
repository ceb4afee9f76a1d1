"""The model as the templates see it: where each tensor, constant and scratch buffer lies, and what model.c calls it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from stages.ir.graph import place
from stages.lower.arena.liveness import scratch_name
from stages.lower.arena.planner import round_up

if TYPE_CHECKING:
    from stages.emit.placement import Placement
    from stages.ir.graph import Graph
    from stages.lower.arena import Buffer
    from stages.lower.arena.rules import Contents
    from stages.lower.codegen.layers import LayerFunction
    from stages.tensorize.artifact import Tensorized


@dataclass(frozen=True)
class Place:
    """An enumerator of model.c: its name, the offset it stands for, what lies there ('' if the name tells) and when."""

    name: str
    offset: int
    what: str = ""
    when: str = ""


class Block:
    """An arena, or the weights, of one region, or the state: a variable of the sources, and the places asked for in it.

    `suffix` ends its names, `_dtcm`; it is '' where there is but one of its part. `pointer` is the function of model.c
    that makes an address of an offset. `loaded_from` is the region that weights are copied from at start, or '';
    `rules` are the numbers of the memory rules that put something there.
    """

    def __init__(
        self, part: Literal["arena", "weights", "state"], region: str, size: int, placed: Placement, *, only: bool
    ) -> None:
        self.part = part
        self.loaded_from = placed.kept.get(region, "") if part == "weights" else ""
        self.rules = placed.rules.get((region, part), ())
        self.region = region
        self.bytes = size
        self.suffix = "" if only else f"_{region}"
        self.pointer = {
            "arena": "at" if only else f"in_{region}",
            "weights": f"weight{'' if only else f'_in_{region}'}",
            "state": "kept",
        }[part]
        self.places: dict[str, Place] = {}

    def at(self, what: str, place: Place) -> str:
        """`at(LAYER_003_OUTPUT)`, where `what` lies."""
        self.places[what] = place
        return f"{self.pointer}({place.name})"


class Model:
    """All that is known about the model when its files are written.

    `constants_of` are the keys of each layer's constants. `arenas` and `weights` have the places that were asked for by
    `port` and `argument`, by what lies there.
    """

    def __init__(
        self,
        contents: Contents,
        made: Tensorized,
        functions: dict[int, LayerFunction],
        placed: Placement,
        ahead: Mapping[int, Sequence[tuple[int, LayerFunction]]] | None = None,
    ) -> None:
        """`ahead` has what is called before a layer for those behind it, whose indices it tells."""
        self.graph = contents.graph
        self.constants_of = contents.constants
        self.ahead = ahead or {}
        self.plan = made.plan
        self.functions = functions
        self.lives = contents.lives
        self.placed = placed
        only = {"arena": len(placed.arenas) == 1, "weights": len(placed.weights) == 1}
        self.arenas = [Block("arena", one.region, one.plan.total, placed, only=only["arena"]) for one in placed.arenas]
        self.weights = [
            Block("weights", one.region, len(one.data), placed, only=only["weights"]) for one in placed.weights
        ]
        self._buffers: dict[str, tuple[Buffer, int, Block]] = {}
        for arena, block in zip(placed.arenas, self.arenas, strict=True):
            self._buffers |= {b.name: (b, arena.plan.offsets[b.name], block) for b in arena.plan.buffers}
        self._constants: dict[str, tuple[int, Block]] = {}
        for weights, block in zip(placed.weights, self.weights, strict=True):
            self._constants |= {key: (offset, block) for key, offset in weights.offsets.items()}
        self._names = _tensor_names(self.graph)
        self.kept = _state_offsets(self.graph, placed.arenas[0].plan.alignment)
        size = max((offset + self.graph.tensors[name].bytes for name, offset in self.kept.items()), default=0)
        self.state = Block("state", "", size, placed, only=True)

    def where(self, tensor: str) -> tuple[Block, int]:
        """The arena or the state, and the bytes from its start. Raises KeyError for a constant tensor."""
        root, start = place(self.graph.tensors, tensor)
        if root in self.kept:
            return self.state, self.kept[root] + start
        _, offset, block = self._buffers[self.lives.home[tensor]]
        return block, offset + self.lives.offset[tensor]

    def port(self, tensor: str) -> str:
        """The place of an input or output of the model: `at(INPUT_0)`."""
        return self._at(tensor)

    def argument(self, layer: int, role: str) -> str:
        """What model.c passes for a parameter: `at(LAYER_003_OUTPUT)` or `weight(LAYER_003_BIAS)`."""
        kind, _, key = role.partition(":")
        entry = self.plan.layers[layer]
        if kind == "scratch":
            buffer, offset, block = self._buffers[scratch_name(layer, key)]
            name = f"LAYER_{layer:03d}_{_word(key)}"
            return block.at(buffer.name, Place(name, offset, f"scratch, {buffer.bytes} bytes"))
        if kind == "constant":
            constant, name = entry.constants[key], f"LAYER_{layer:03d}_{_word(key)}"
            offset, block = self._constants[constant]
            return block.at(constant, Place(name, offset))
        one = self.graph.layers[layer]
        tensor = {"input": one.inputs, "output": one.outputs, "state": one.state}[kind][int(key)]
        root, start = place(self.graph.tensors, tensor)
        if root in self.kept:
            return self.state_at(tensor)
        if tensor in self.lives.home:
            return self._at(tensor)
        offset, block = self._constants[root]
        return block.at(tensor, Place(self._names[tensor], offset + start, tensor))

    def state_at(self, tensor: str) -> str:
        """The place of a tensor of state: `kept(STATE_0)`."""
        block, offset = self.where(tensor)
        return block.at(tensor, Place(self._names[tensor], offset, tensor))

    def arena_rows(self) -> list[dict[str, Any]]:
        """The buffers, each with the tensors in it by the layer that writes them, an input's 0; scratch holds none."""
        holds = defaultdict[str, list[dict[str, Any]]](list)
        written = [(0, name) for name in self.graph.inputs]
        written += [(layer.index, name) for layer in self.graph.layers for name in layer.outputs]
        for first, name in written:
            if name in self.lives.home:
                held = {"name": name, "first": first, "bytes": self.graph.tensors[name].bytes}
                holds[self.lives.home[name]].append(held)
        return [
            {**row, "region": arena.region, "holds": holds[str(row["name"])]}
            for arena in self.placed.arenas
            for row in arena.plan.rows()
        ]

    def _at(self, tensor: str) -> str:
        buffer, _, _ = self._buffers[self.lives.home[tensor]]
        block, offset = self.where(tensor)
        return block.at(tensor, Place(self._names[tensor], offset, tensor, _life(buffer)))


def _life(buffer: Buffer) -> str:
    """`, layers 3 to 5`: while its memory is in use."""
    last = f" to {buffer.last}" if buffer.last > buffer.first else ""
    return f", layer{'s' if last else ''} {buffer.first}{last}"


def _state_offsets(graph: Graph, alignment: int) -> dict[str, int]:
    """Where each tensor of state lies in the block of them, one after the other."""
    found, end = {}, 0
    for name, tensor in graph.tensors.items():
        if tensor.state:
            found[name] = end
            end = round_up(end + tensor.bytes, alignment)
    return found


def _tensor_names(graph: Graph) -> dict[str, str]:
    """INPUT_0, LAYER_003_OUTPUT, LAYER_003_OUTPUT_1 for the second of several, STATE_0, and CONSTANT_0 for the rest."""
    names = {tensor: f"INPUT_{number}" for number, tensor in enumerate(graph.inputs)}
    names |= {t.name: f"STATE_{number}" for number, t in enumerate(t for t in graph.tensors.values() if t.state)}
    for layer in graph.layers:
        for number, tensor in enumerate(layer.outputs):
            names[tensor] = f"LAYER_{layer.index:03d}_OUTPUT{f'_{number}' if number else ''}"
    others = [tensor for tensor in graph.tensors if tensor not in names]
    return names | {tensor: f"CONSTANT_{number}" for number, tensor in enumerate(others)}


def _word(key: str) -> str:
    """A role's key as part of an enumerator."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in key).upper()
