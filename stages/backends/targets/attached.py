"""Devices beside the core of a board.

An accelerator has its own memory, which the DMA engine fills.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import Field
from pydantic_core import PydanticCustomError

from stages.backends.targets.memory import Address, Memory
from stages.support.options.names import Name
from stages.support.options.strict_model import StrictModel, mistake

# Where simulators have the monitor of devices (stages/backends/riscv/spike/devices/monitor.cc), and the log that it
# writes into the current directory.
MONITOR = 0x0400_0000
DEVICES_LOG = "devices.log"


class Dma(StrictModel):
    """A DMA engine: it moves data while core and accelerator work. Transfers finish in order.

    A transfer of r runs with b bytes in all takes `fixed_cycles` + r * `run_cycles` + b / `bytes_per_cycle`, rounded
    up. The core waits while `queue` transfers are not done. `base` is the address of its registers.
    """

    base: Address
    bytes_per_cycle: int = Field(gt=0, le=1024)
    fixed_cycles: int = Field(default=0, ge=0)
    run_cycles: int = Field(default=0, ge=0)
    queue: int = Field(default=4, ge=1, le=256)

    def cycles(self, runs: int, count: int) -> int:
        """Return the cycles of a started transfer of `runs` runs with `count` bytes in total."""
        return self.fixed_cycles + runs * self.run_cycles + -(-count // self.bytes_per_cycle)


class Attached(StrictModel):
    """`accelerator:` of a board.

    kind        the accelerator: a folder of `stages/backends/accelerators`, or a plug-in's
    memory      the region, one for the arena, that the engine works on
    base        the address of its registers, if it has any
    parameters  options of the accelerator (`Accelerator.parameters`)
    dma         absent: the core copies
    """

    kind: Name
    memory: str
    base: Address | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    dma: Dma | None = None


class Engine(Attached):
    """An attached accelerator for stages, with the bytes of memory that a network may use."""

    bytes: int


def mistakes(attached: Attached, memory: Memory) -> Iterator[PydanticCustomError]:
    """Yield the ways in which an accelerator does not fit the board's memory."""
    name = attached.memory
    region = memory.regions.get(name)
    if region is None:
        yield mistake(f"there is no region {name!r}; there are {', '.join(memory.regions)}", "accelerator", "memory")
        return
    if "arena" not in region.holds:
        why = f"{name} holds {', '.join(region.holds)}; an accelerator needs memory for the arena"
        yield mistake(why, "accelerator", "memory", beside=("memory", name))
    if len(memory.homes("arena")) == 1:
        why = f"{name} is the only memory for the arena; tensors that do not fit need a second one"
        yield mistake(why, "accelerator", "memory", beside=("memory", name))
    for at, base in (((), attached.base), (("dma",), attached.dma.base if attached.dma else None)):
        where = None if base is None else memory.name_of(base)
        if where is not None:
            yield mistake(f"{base:#x} lies in the memory {where}", "accelerator", *at, "base", beside=("memory", where))


def engine(attached: Attached, memory: Memory) -> Engine:
    """Return the accelerator of a board, with the size of its memory."""
    capacity = next(capacity for capacity in memory.capacities("arena") if capacity.region == attached.memory)
    return Engine(**dict(attached), bytes=capacity.bytes)
