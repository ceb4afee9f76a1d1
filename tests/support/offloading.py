"""What commands of a program do, in numpy: transfers and tiles take effect as late as they may.

A transfer copies when it is waited for, or when one behind it is; a tile computes when it is waited for. So a program
that forgets to wait, or fills a buffer too early, computes wrong bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stages.ir.graph import LayerView
from stages.lower.offload.program import Await, Command, Fence, Place, Program, Start, Transfer


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
