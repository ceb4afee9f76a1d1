"""Cores, boards and timing models as YAML declares them, and the targets made of them.

A core is declared once: instruction set, compiler, kernels and the machine of a simulator that counts its
instructions. A board names a core and has its own memories. It is simulated on the core's machine. If that has no
memory at the board's addresses, a second firmware is linked for the same regions at the machine's addresses.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from stages.backends.targets.attached import MONITOR, Attached, engine, mistakes
from stages.backends.targets.chip import ChipNumber
from stages.backends.targets.flash import Flash, unknown_flash
from stages.backends.targets.frequency import Frequency
from stages.backends.targets.like import written_out
from stages.backends.targets.memory import Memory, Region
from stages.backends.targets.power import Power
from stages.backends.targets.spec import BoardFacts, Core, Simulator, Target
from stages.backends.targets.timing import Timing, TimingModel
from stages.support.options.names import Name
from stages.support.options.remote_store import RemoteStore
from stages.support.options.strict_model import StrictModel, mistake

_PAGE = 4096
# Where Spike has its debug module and boot ROM, the core-local and the platform interrupt controller (riscv/platform.h
# of Spike), each up to the end of its last page, and the monitor of devices (stages/backends/targets/attached.py). Its
# UART gives way to memory.
_SPIKE = ((0, 0x2000), (0x200_0000, 0x20C_0000), (0xC00_0000, 0xD00_0000), (MONITOR, MONITOR + 0x1000))


class Board(StrictModel):
    """One entry under `boards:`.

    core         one of `cores:`
    memory       the board's memory, as the vendor states it in `source`
    machine      a machine of the core's simulator with this memory map; default: the core's machine
    accelerator  an engine next to the core that computes layers
    timing       timing model of this chip, if the core has none or another
    flash        wait states, for estimated cycles
    chip         identification numbers for a debugger, in addition to those of the core
    power        current and voltage while the core computes, for estimated energy
    """

    core: str
    title: str
    memory: Memory
    clock: Frequency | None = None
    machine: str = ""
    source: str = ""
    accelerator: Attached | None = None
    timing: str = ""
    flash: Flash | None = None
    chip: tuple[ChipNumber, ...] = ()
    power: Power | None = None

    @model_validator(mode="after")
    def _check(self) -> Board:
        if self.power is not None and self.power.clock not in (None, self.clock):
            stated = f"the current is stated at {self.power.clock / 1e6:g} MHz, which is not the board's clock"
            raise mistake(
                f"{stated}; state ua_per_mhz, or a current at that clock", "power", "clock", beside=("clock",)
            )
        for wrong in mistakes(self.accelerator, self.memory) if self.accelerator is not None else ():
            raise wrong
        for region in self.flash.region if self.flash is not None else ():
            if region not in self.memory.regions:
                there = ", ".join(self.memory.regions)
                raise mistake(f"there is no region {region!r}; there are {there}", "flash", "region")
        return self


class Catalogue(StrictModel):
    """Cores, boards and timing models by name, and the remote store.

    No board has the name of a core.
    """

    schema_version: Literal[1] = Field(alias="schema")
    cores: dict[Name, Core]
    boards: dict[Name, Board] = Field(default_factory=dict)
    store: RemoteStore | None = None
    timings: dict[Name, Timing] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _without_like(cls, data: Any) -> Any:
        return written_out(data)

    @model_validator(mode="after")
    def _check(self) -> Catalogue:
        """Check that the addresses of a board fit its core and its machine."""
        for name, board in self.boards.items():
            core = self.cores.get(board.core)
            if core is None:
                continue
            for region, why in board.memory.beyond(core.word_bits):
                raise mistake(why, "boards", name, "memory", region, beside=("cores", board.core, "word_bits"))
            machine = None if board.machine or core.simulator.kind == "spike" else core.memory
            if machine is not None and board.memory.stack >= machine.region_of("data").length:
                message = f"a stack of {board.memory.stack:,} bytes is more than the machine of {board.core} has"
                beside = ("cores", board.core, "memory", machine.home("data"), "length")
                raise mistake(message, "boards", name, "memory", "stack", beside=beside)
        return self

    def targets(self) -> dict[str, Target]:
        """Return all cores, then all boards, by name.

        Raises KeyError for an unknown core or timing model.
        """
        targets = {name: Target(name=name, core=name, **_fields(core)) for name, core in self.cores.items()}
        targets |= {name: _on_board(name, board, self.cores[board.core]) for name, board in self.boards.items()}
        return {name: self._timed(target) for name, target in targets.items()}

    def _timed(self, target: Target) -> Target:
        if not target.timing:
            return target
        model = TimingModel(name=target.timing, **dict(self.timings[target.timing]))
        return target.model_copy(update={"timing_model": model})


def _on_board(name: str, board: Board, core: Core) -> Target:
    fields = _fields(core)
    simulator: Simulator = fields["simulator"]
    if board.machine:
        simulator = simulator.model_copy(update={"machine": board.machine})
    simulated = None if board.machine else moved(board.memory, core)
    facts = BoardFacts(**{key: getattr(board, key) for key in BoardFacts.model_fields})
    fields |= {"memory": board.memory, "simulator": simulator, "simulated": simulated, "board": facts}
    timing = board.timing or core.timing
    flash = board.flash or (unknown_flash(board.memory, board.clock) if timing else None)
    fields |= {"timing": timing, "flash": flash, "chip": (*core.chip, *board.chip)}
    attached = None if board.accelerator is None else engine(board.accelerator, board.memory)
    return Target(name=name, core=board.core, accelerator=attached, alone=core, **fields)


def moved(memory: Memory, core: Core) -> Memory | None:
    """Return a board's regions at addresses where the core's machine has memory.

    None if they need not move. Written regions go to the machine's RAM, the others to its ROM, in order. If RAM or ROM
    is too small, the largest regions are shortened, and `reserve` is ignored; the linker reports whether the firmware
    fits. Spike has memory at all addresses without a device.
    """
    machine = core.memory
    if machine is None:
        return None
    if core.simulator.kind == "spike":
        if not any(
            region.origin < end and start < region.end for region in memory.regions.values() for start, end in _SPIKE
        ):
            return None
    elif all(_inside(region, machine) for region in memory.regions.values()):
        return None
    regions: dict[str, Any] = {}
    for home, written in ((machine.region_of("code"), False), (machine.region_of("data"), True)):
        origin, those = home.origin, {n: region for n, region in memory.regions.items() if region.is_written == written}
        lengths = _shared(home.length, {name: region.length for name, region in those.items()})
        for name, region in those.items():
            regions[name] = region.model_copy(update={"origin": origin, "length": lengths[name], "same_as": ""})
            origin += lengths[name]
    return Memory(stack=memory.stack, **{name: regions[name] for name in memory.regions})


def _shared(capacity: int, lengths: dict[str, int]) -> dict[str, int]:
    """Return the lengths in bytes. They are shortened if their sum exceeds the capacity.

    The largest are shortened, to whole pages.
    """
    shortened = {}
    for number, (name, length) in enumerate(sorted(lengths.items(), key=lambda item: item[1])):
        share = capacity // (len(lengths) - number)
        shortened[name] = length if length <= share else share // _PAGE * _PAGE
        capacity -= shortened[name]
    return shortened


def _inside(region: Region, machine: Memory) -> bool:
    return any(other.origin <= region.origin and region.end <= other.end for other in machine.regions.values())


def _fields(core: Core) -> dict[str, Any]:
    return {name: getattr(core, name) for name in Core.model_fields}
