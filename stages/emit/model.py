"""The model for templates: address and C name of tensors, constants and scratch."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stages.emit.placement import Placement
from stages.ir.graph import Graph, storage_of
from stages.lower.arena import Buffer
from stages.lower.arena.liveness import scratch_name
from stages.lower.arena.planner import round_up
from stages.lower.arena.rules import Contents
from stages.lower.codegen.layers import LayerFunction
from stages.tensorize.artifact import Tensorized


@dataclass(frozen=True)
class Place:
    """An enumerator of model.c: name, offset, and a comment on content and lifetime or ''."""

    name: str
    offset: int
    what: str = ""
    when: str = ""


class Block:
    """A variable of the sources: a region's arena or weights, or the state, with its places.

    suffix       end of its names, such as `_dtcm`; '' if its part has one block only
    pointer      function of model.c that converts an offset to an address
    loaded_from  region from which start-up code copies the weights, or ''
    rules        numbers of the memory rules that put something there
    """

    def __init__(
        self, part: Literal["arena", "weights", "state"], region: str, size: int, placed: Placement, *, only: bool
    ) -> None:
        self.part = part
        self.loaded_from = placed.loaded_from.get(region, "") if part == "weights" else ""
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

    def at(self, content: str, place: Place) -> str:
        """Return the C expression of a place, `at(LAYER_003_OUTPUT)`, and note it for the enum."""
        self.places[content] = place
        return f"{self.pointer}({place.name})"


class Model:
    """The model with its graph, plan, functions and placement.

    `constants_of` has the keys of each layer's constants. `arenas` and `weights` collect the places that `port` and
    `argument` use.
    """

    def __init__(
        self,
        contents: Contents,
        tensorized: Tensorized,
        functions: dict[int, LayerFunction],
        placed: Placement,
        ahead: Mapping[int, Sequence[tuple[int, LayerFunction]]] | None = None,
        rests: Mapping[int, LayerFunction] | None = None,
        results: Mapping[int, LayerFunction] | None = None,
    ) -> None:
        """Place everything.

        ahead  by layer, the functions called before it for later layers, with the indices of those layers
        rests  by layer, the function of the last call of a layer that runs by rows, if that has fewer rows
        results  by layer, the function after the last call of a layer that adds up rows
        """
        self.rests = rests or {}
        self.results = results or {}
        self.graph = contents.graph
        self.constants_of = contents.constants
        self.ahead = ahead or {}
        self.plan = tensorized.plan
        self.functions = functions
        self.lives = contents.lives
        self.placed = placed
        only = {"arena": len(placed.arenas) == 1, "weights": len(placed.weights) == 1}
        self.arenas = [
            Block("arena", arena.region, arena.plan.total, placed, only=only["arena"]) for arena in placed.arenas
        ]
        self.weights = [
            Block("weights", weights.region, len(weights.data), placed, only=only["weights"])
            for weights in placed.weights
        ]
        self._buffers: dict[str, tuple[Buffer, int, Block]] = {}
        for arena, block in zip(placed.arenas, self.arenas, strict=True):
            self._buffers |= {b.name: (b, arena.plan.offsets[b.name], block) for b in arena.plan.buffers}
        self._constants: dict[str, tuple[int, Block]] = {}
        for weights, block in zip(placed.weights, self.weights, strict=True):
            self._constants |= {key: (offset, block) for key, offset in weights.offsets.items()}
        self._names = _tensor_names(self.graph)
        self.state_offsets, size = _state_offsets(self.graph, placed.arenas[0].plan.alignment)
        self.state = Block("state", "", size, placed, only=True)

    def where(self, tensor: str) -> tuple[Block, int]:
        """Return the arena or the state, and the offset in bytes.

        Raises KeyError for a constant tensor.
        """
        root, start = storage_of(self.graph.tensors, tensor)
        if root in self.state_offsets:
            return self.state, self.state_offsets[root] + start
        _, offset, block = self._buffers[self.lives.home[tensor]]
        return block, offset + self.lives.offset[tensor]

    def port(self, tensor: str) -> str:
        """Return the C expression of an input or output of the model: `at(INPUT_0)`."""
        return self._at(tensor)

    def argument(self, layer: int, role: str) -> str:
        """Return the argument for a parameter: `at(LAYER_003_OUTPUT)` or `weight(LAYER_003_BIAS)`."""
        kind, _, key = role.partition(":")
        entry = self.plan.layers[layer]
        if kind == "scratch":
            buffer, offset, block = self._buffers[scratch_name(layer, key)]
            name = f"LAYER_{layer:03d}_{_enumerator(key)}"
            return block.at(buffer.name, Place(name, offset, f"scratch, {buffer.bytes} bytes"))
        if kind == "constant":
            constant, name = entry.constants[key], f"LAYER_{layer:03d}_{_enumerator(key)}"
            offset, block = self._constants[constant]
            return block.at(constant, Place(name, offset))
        graph_layer = self.graph.layers[layer]
        tensor = {"input": graph_layer.inputs, "output": graph_layer.outputs, "state": graph_layer.state}[kind][
            int(key)
        ]
        root, start = storage_of(self.graph.tensors, tensor)
        if root in self.state_offsets:
            return self.state_at(tensor)
        if tensor in self.lives.home:
            return self._at(tensor)
        offset, block = self._constants[root]
        return block.at(tensor, Place(self._names[tensor], offset + start, tensor))

    def rows_at(self, tensor: str, before: int) -> str:
        """Return the C address `before` bytes before a tensor: that of its padding rows."""
        if not before:
            return self._at(tensor)
        block, offset = self.where(tensor)
        name = f"{self._names[tensor]}_ROWS"
        buffer, _, _ = self._buffers[self.lives.home[tensor]]
        return block.at(f"rows:{tensor}", Place(name, offset - before, tensor, _life(buffer)))

    def scratch_bytes(self, layer: int, name: str) -> int:
        """Return the bytes of a layer's scratch."""
        return self._buffers[scratch_name(layer, name)][0].bytes

    def state_at(self, tensor: str) -> str:
        """Return the C expression of a state tensor: `kept(STATE_0)`."""
        block, offset = self.where(tensor)
        return block.at(tensor, Place(self._names[tensor], offset, tensor))

    def arena_rows(self) -> list[dict[str, Any]]:
        """Return the arena plan's rows; `holds` lists a buffer's tensors with their writers."""
        holds = defaultdict[str, list[dict[str, Any]]](list)
        written = [(0, name) for name in self.graph.inputs]
        written += [(layer.index, name) for layer in self.graph.layers for name in layer.outputs]
        for layer_index, name in written:
            if name in self.lives.home:
                entry = {"name": name, "first": layer_index, "bytes": self.graph.tensors[name].bytes}
                holds[self.lives.home[name]].append(entry | self._by_rows(name))
        return [
            {**row, "region": arena.region, "holds": holds[str(row["name"])]}
            for arena in self.placed.arenas
            for row in arena.plan.rows()
        ]

    def _by_rows(self, tensor: str) -> dict[str, int]:
        """Return first layer and bytes of a streamed tensor, and a rolling buffer's rows."""
        for group in self.plan.groups:
            if all(layer.output != tensor for layer in group.layers) and tensor != group.pushed:
                continue
            written = group.tensors[tensor]
            if written.whole:
                return {"first": group.first}
            rows = group.capacity[written.place_of or tensor]
            return {"first": group.first, "bytes": rows * written.row_bytes, "rows": rows, "height": written.height}
        return {}

    def _at(self, tensor: str) -> str:
        if storage_of(self.graph.tensors, tensor)[0] in self.state_offsets:
            return self.state_at(tensor)
        buffer, _, _ = self._buffers[self.lives.home[tensor]]
        block, offset = self.where(tensor)
        return block.at(tensor, Place(self._names[tensor], offset, tensor, _life(buffer)))


def _life(buffer: Buffer) -> str:
    """Return a buffer's lifetime: `, layers 3 to 5`."""
    end = f" to {buffer.last}" if buffer.last > buffer.first else ""
    return f", layer{'s' if end else ''} {buffer.first}{end}"


def _state_offsets(graph: Graph, alignment: int) -> tuple[dict[str, int], int]:
    """Return the offset of each state tensor in the state block, and its bytes.

    The bytes are a multiple of the alignment, so that an array may have the states of several streams.
    """
    offsets, end = {}, 0
    for name, tensor in graph.tensors.items():
        if tensor.state:
            offsets[name] = end
            end = round_up(end + tensor.bytes, alignment)
    return offsets, end


def _tensor_names(graph: Graph) -> dict[str, str]:
    """Return names: INPUT_0, LAYER_003_OUTPUT (_1: the second), STATE_0, else CONSTANT_0.

    VARIABLE_0 is a tensor that layers update in place.
    """
    names = {tensor: f"INPUT_{number}" for number, tensor in enumerate(graph.inputs)}
    names |= {t.name: f"STATE_{number}" for number, t in enumerate(t for t in graph.tensors.values() if t.state)}
    variables = dict.fromkeys(tensor for layer in graph.layers for tensor in layer.state if tensor not in names)
    names |= {tensor: f"VARIABLE_{number}" for number, tensor in enumerate(variables)}
    for layer in graph.layers:
        for number, tensor in enumerate(layer.outputs):
            names[tensor] = f"LAYER_{layer.index:03d}_OUTPUT{f'_{number}' if number else ''}"
    constants = [tensor for tensor in graph.tensors if tensor not in names]
    return names | {tensor: f"CONSTANT_{number}" for number, tensor in enumerate(constants)}


def _enumerator(key: str) -> str:
    """Convert a role's key to a part of an enumerator."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in key).upper()
