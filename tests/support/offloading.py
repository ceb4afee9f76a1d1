"""What commands of a program do, in numpy: transfers and tiles take effect as late as they may.

A transfer copies when it is waited for, or when one behind it is; a tile computes when it is waited for. So a program
that forgets to wait, or fills a buffer too early, computes wrong bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stages.ir.graph import Graph, LayerView
from stages.lower.arena.liveness import liveness, scratch_name
from stages.lower.arena.planner import plan as plan_arena
from stages.lower.offload.machine import ALIGNMENT
from stages.lower.offload.plan import Offload
from stages.lower.offload.program import Await, Command, Fence, Place, Program, Start, Transfer
from stages.lower.offload.residence import buffers_in_l1


@dataclass
class Memory:
    """Bytes by role."""

    bytes: dict[str, np.ndarray] = field(default_factory=dict)

    def at(self, place: Place, runs: int, count: int, stride: int) -> np.ndarray:
        """The bytes of some runs: indices, so that they can be read and written."""
        starts = place.offset + np.arange(runs) * stride
        index = (starts[:, None] + np.arange(count)).reshape(-1)
        assert index.min(initial=0) >= 0 and index.max(initial=0) < self.bytes[place.role].size, place
        return index


def apart(transfer: Transfer) -> list[Transfer]:
    """Each of its times by itself."""
    found = []
    for number in range(transfer.times):
        to = Place(role=transfer.to.role, offset=transfer.to.offset + number * transfer.to_step)
        source = Place(role=transfer.source.role, offset=transfer.source.offset + number * transfer.source_step)
        found.append(transfer.model_copy(update={"to": to, "source": source, "times": 1}))
    return found


class Engine(ABC):
    """Computes tiles of a layer from bytes. A test says what: its tile is all that is asked for, from L1 alone."""

    @abstractmethod
    def compute(self, view: LayerView, number: int, start: Start, memory: Memory) -> None: ...


class Units:
    """The engine and DMA over memories. Their work takes effect when it is waited for; `eager` transfers at once."""

    def __init__(self, engine: Engine, *, eager: bool = False) -> None:
        self._engine, self._eager = engine, eager
        self._transfers: list[tuple[Transfer, Memory]] = []
        self._tiles: list[tuple[int, Start, LayerView, Memory]] = []

    @property
    def idle(self) -> bool:
        return not self._transfers and not self._tiles

    def do(self, command: Command, view: LayerView, memory: Memory) -> None:
        """What the layer's core does; it waits where the command says so."""
        if isinstance(command, Transfer):
            for one in apart(command):
                self._transfers.append((one, memory))
                if self._eager:
                    _copy(one, memory)
        elif isinstance(command, Fence):
            while len(self._transfers) > command.left:
                one, of = self._transfers.pop(0)
                if not self._eager:
                    _copy(one, of)
        elif isinstance(command, Start):
            self._tiles.append((command.tile, command, view, memory))
        elif isinstance(command, Await):
            while self._tiles and self._tiles[0][0] <= command.tile:
                number, start, of_view, of = self._tiles.pop(0)
                self._engine.compute(of_view, number, start, of)


def _copy(one: Transfer, memory: Memory) -> None:
    source = memory.at(one.source, one.runs, one.bytes, one.source_stride)
    to = memory.at(one.to, one.runs, one.bytes, one.to_stride)
    memory.bytes[one.to.role][to] = memory.bytes[one.source.role][source]


def run(
    program: Program, view: LayerView, given: Mapping[str, np.ndarray], engine: Engine, *, eager: bool = False
) -> Memory:
    """Memory after the program; `given` are inputs, output and constants by role."""
    memory = Memory({**{role: array.copy() for role, array in given.items()}})
    for buffer in program.buffers:
        memory.bytes[f"scratch:{buffer.name}"] = np.full(buffer.bytes, 0x5A, np.uint8)
    units = Units(engine, eager=eager)
    for command in (*program.ahead, *program.commands):
        units.do(command, view, memory)
    assert units.idle
    return memory


def run_network(
    graph: Graph, made: Offload, engine: Engine, tensors: Mapping[str, np.ndarray], *, eager: bool = False
) -> dict[str, np.ndarray]:
    """The bytes of each tensor that a program writes, as they are right behind its layer.

    Buffers of L1 lie where the arena's plan has them, so that what comes too early is seen by whoever is there.
    `tensors` are right bytes of all: the model's inputs, and what layers that are not offloaded write.
    """
    lives = liveness(graph)
    planned = plan_arena(buffers_in_l1(graph, frozenset(), made.resident, made.programs), ALIGNMENT)
    l1 = np.full(planned.total, 0x5A, np.uint8)
    sizes = {buffer.name: buffer.bytes for buffer in lives.buffers}
    elsewhere = {name: np.full(size, 0xA5, np.uint8) for name, size in sizes.items() if name not in made.resident}

    def place(name: str, begin: int, size: int) -> np.ndarray:
        if name in elsewhere:
            return elsewhere[name][begin : begin + size]
        return l1[planned.offsets[name] + begin :][:size]

    def tensor(name: str) -> np.ndarray:
        return place(lives.home[name], lives.offset[name], graph.tensors[name].bytes)

    def memory(index: int) -> Memory:
        layer, program = graph.layers[index], made.programs[index]
        found = {f"input:{n}": tensor(name) for n, name in enumerate(layer.inputs)}
        found |= {f"output:{n}": tensor(name) for n, name in enumerate(layer.outputs)}
        found |= {f"constant:{key}": array for key, array in made.constants[index].items()}
        for buffer in program.buffers:
            found[f"scratch:{buffer.name}"] = place(scratch_name(index, buffer.name), 0, buffer.bytes)
        return Memory(found)

    memories = {index: memory(index) for index in made.programs}
    units, written = Units(engine, eager=eager), {}
    for name in graph.inputs:
        tensor(name)[:] = tensors[name]
    for layer in graph.layers:
        for index, program in made.programs.items():
            for transfer in program.ahead if program.during == layer.index else ():
                units.do(transfer, graph.view(graph.layers[index]), memories[index])
        if layer.index not in made.programs:
            for name in (one for one in layer.inputs if one in lives.home):
                assert np.array_equal(tensor(name), tensors[name]), f"layer {layer.index} reads wrong bytes of {name}"
            tensor(layer.outputs[0])[:] = tensors[layer.outputs[0]]
            continue
        for command in made.programs[layer.index].commands:
            units.do(command, graph.view(layer), memories[layer.index])
        written[layer.outputs[0]] = tensor(layer.outputs[0]).copy()
    assert units.idle
    return written
