"""What commands of a program do, in numpy: transfers and tiles take effect as late as they may.

A transfer copies when it is waited for, or when one behind it is; a tile computes when it is waited for. So a program
that forgets to wait, or fills a buffer too early, computes wrong bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stages.accelerators.tiles import Tile
from stages.graph import LayerView
from stages.offload.program import Await, Place, Program, Settle, Start, Transfer
from stages.offload.tiling import Way


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
    def compute(self, view: LayerView, tile: Tile, start: Start, memory: Memory) -> None: ...


def run(program: Program, way: Way, view: LayerView, given: Mapping[str, np.ndarray], engine: Engine) -> Memory:
    """Memory after the program; `given` are inputs, output and constants by role."""
    memory = Memory({**{role: array.copy() for role, array in given.items()}})
    for buffer in program.buffers:
        memory.bytes[f"scratch:{buffer.name}"] = np.full(buffer.bytes, 0x5A, np.uint8)
    transfers: list[Transfer] = []
    tiles: dict[int, Start] = {}

    def settle(left: int) -> None:
        while len(transfers) > left:
            one = transfers.pop(0)
            source = memory.at(one.source, one.runs, one.bytes, one.source_stride)
            to = memory.at(one.to, one.runs, one.bytes, one.to_stride)
            assert one.times == 1
            memory.bytes[one.to.role][to] = memory.bytes[one.source.role][source]

    for command in (*program.ahead, *program.commands):
        if isinstance(command, Transfer):
            transfers.extend(each for each in apart(command))
        elif isinstance(command, Settle):
            settle(command.left)
        elif isinstance(command, Start):
            tiles[command.tile] = command
        elif isinstance(command, Await):
            for number in sorted(tiles):
                if number <= command.tile:
                    engine.compute(view, way.tiles[number], tiles.pop(number), memory)
    assert not tiles and not transfers
    return memory
