"""What is decided over the whole network: which tensors lie in L1, and how each offloaded layer is cut.

given    layers in order, with the options of those that are offloaded; buffers of tensors with their lives
must     at each layer the buffers in L1, the layer's own and what is brought ahead for the next one have room
better   fewer cycles
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.lower.offload.machine import aligned

if TYPE_CHECKING:
    from stages.lower.arena.planner import Buffer
    from stages.lower.offload.options import Option, Residence


@dataclass(frozen=True)
class Task:
    """An offloaded layer.

    homes   names of the buffers of its inputs and of its output
    during  the layer before it while which its constants may come, None for the first
    """

    index: int
    homes: tuple[str, ...]
    during: int | None
    options: Mapping[Residence, tuple[Option, ...]]

    def able(self, resident: frozenset[str]) -> tuple[Option, ...]:
        """The options for tensors that lie so, the fastest first."""
        found = self.options.get(tuple(home in resident for home in self.homes), ())
        return tuple(option for option in found if not option.ahead or self.during is not None)


@dataclass(frozen=True)
class Problem:
    """`capacity` in bytes; `tensors` are the buffers that a task reads or writes."""

    tasks: tuple[Task, ...]
    tensors: tuple[Buffer, ...]
    capacity: int

    @property
    def moments(self) -> list[int]:
        """The layers at which something may come into L1: nowhere does more lie there than at one of them."""
        found = {task.index for task in self.tasks} | {tensor.first for tensor in self.tensors}
        return sorted(found | {task.during for task in self.tasks if task.during is not None})

    def load(self, solution: Solution) -> dict[int, int]:
        """Bytes of L1 in use by layer, wherever something is."""
        found: dict[int, int] = {}

        def add(layers: Sequence[int], count: int) -> None:
            for layer in layers:
                found[layer] = found.get(layer, 0) + count

        for tensor in self.tensors:
            if tensor.name in solution.resident:
                add(range(tensor.first, tensor.last + 1), aligned(tensor.bytes))
        for task in self.tasks:
            option = solution.chosen[task.index]
            add((task.index,), option.bytes)
            if option.ahead and task.during is not None:
                add(range(task.during, task.index), option.ahead_bytes)
        return found

    def holds(self, solution: Solution) -> bool:
        return max(self.load(solution).values(), default=0) <= self.capacity


@dataclass(frozen=True)
class Solution:
    """`resident` are names of buffers; the option of each task, by the layer's index."""

    resident: frozenset[str] = frozenset()
    chosen: Mapping[int, Option] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        """Of all offloaded layers."""
        return sum(option.cycles for option in self.chosen.values())
