"""The decision over the network: which tensors lie in L1, and how layers are cut.

input       layers in order with their options; buffers of tensors with their lifetimes
constraint  at each layer its buffers, resident tensors and early constants of the next layer fit into L1
objective   minimum cycles
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stages.lower.arena.planner import Buffer
from stages.lower.offload.machine import aligned
from stages.lower.offload.options import Option, Residence


@dataclass(frozen=True)
class Task:
    """An offloaded layer.

    homes   names of the buffers of its inputs and of its output
    during  the earlier layer during which its constants may be transferred, None for the first
    """

    index: int
    homes: tuple[str, ...]
    during: int | None
    options: Mapping[Residence, tuple[Option, ...]]

    def able(self, resident: frozenset[str]) -> tuple[Option, ...]:
        """Return the options for these resident tensors, the fastest first."""
        options = self.options.get(tuple(home in resident for home in self.homes), ())
        return tuple(option for option in options if not option.ahead or self.during is not None)


@dataclass(frozen=True)
class Problem:
    """`capacity` in bytes; `tensors` are the buffers that a task reads or writes."""

    tasks: tuple[Task, ...]
    tensors: tuple[Buffer, ...]
    capacity: int

    @property
    def moments(self) -> list[int]:
        """The layers at which L1 may gain contents. The peak load is at one of them."""
        layers = {task.index for task in self.tasks} | {tensor.first for tensor in self.tensors}
        return sorted(layers | {task.during for task in self.tasks if task.during is not None})

    def load(self, solution: Solution) -> dict[int, int]:
        """Return the used bytes of L1 by layer."""
        used: dict[int, int] = {}

        def add(layers: Sequence[int], count: int) -> None:
            for layer in layers:
                used[layer] = used.get(layer, 0) + count

        for tensor in self.tensors:
            if tensor.name in solution.resident:
                add(range(tensor.first, tensor.last + 1), aligned(tensor.bytes))
        for task in self.tasks:
            option = solution.chosen[task.index]
            add((task.index,), option.bytes)
            if option.ahead and task.during is not None:
                add(range(task.during, task.index), option.ahead_bytes)
        return used

    def holds(self, solution: Solution) -> bool:
        """Return whether the solution fits into L1."""
        return max(self.load(solution).values(), default=0) <= self.capacity


@dataclass(frozen=True)
class Solution:
    """`resident` are names of buffers; `chosen` has each task's option by layer index."""

    resident: frozenset[str] = frozenset()
    chosen: Mapping[int, Option] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        """Cycles of all offloaded layers."""
        return sum(option.cycles for option in self.chosen.values())
