"""The cycles of a network's commands on core, engine and DMA.

The core runs commands in order. A tile begins when it is started and the previous one is done. A transfer begins when
it is enqueued and the previous one is done; if the queue is full, the core waits. `waiting` are the cycles in which
the core waits. Engine and DMA idle if they have no command.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stages.lower.offload.machine import AWAIT, FENCE, LAYER, Machine
from stages.lower.offload.program import Await, Command, Fence, Program, Start, Stretch, Times, Transfer


@dataclass
class Clock:
    """The units' states from the first command on."""

    machine: Machine
    now: int = 0
    engine_free: int = 0
    transfers: list[int] = field(default_factory=list)  # end of each
    tiles: dict[int, int] = field(default_factory=dict)  # end of each tile of the layer
    busy: list[Stretch] = field(default_factory=list)
    _engine: int = 0
    _dma: int = 0
    _waiting: int = 0

    def layer(
        self,
        index: int,
        commands: Iterable[Command],
        instructions: float = 0.0,
        ahead: Iterable[tuple[int, Iterable[Transfer]]] = (),
    ) -> Times:
        """Run a layer: early transfers of other layers, then commands or core instructions."""
        begin, engine, dma, waiting = self.now, self._engine, self._dma, self._waiting
        self.tiles = {}
        for other, transfers in ahead:
            self.ahead(other, transfers)
        self._works(index, instructions)
        for command in commands:
            self._run(index, command)
        cycles, waited = self.now - begin, self._waiting - waiting
        return Times(
            cycles=cycles, engine=self._engine - engine, dma=self._dma - dma, core=cycles - waited, waiting=waited
        )

    def ahead(self, index: int, transfers: Iterable[Transfer]) -> None:
        """Start early transfers for the layer `index`."""
        for transfer in transfers:
            self._run(index, transfer)

    def _run(self, layer: int, command: Command) -> None:
        if isinstance(command, Transfer):
            for _ in range(command.times):
                self._transfer(layer, command)
        elif isinstance(command, Fence):
            self._works(layer, FENCE)
            number = len(self.transfers) - command.left
            if number > 0:
                self._wait(self.transfers[number - 1])
        elif isinstance(command, Start):
            self._works(layer, command.instructions)
            begin = max(self.now, self.engine_free)
            self.engine_free = self.tiles[command.tile] = begin + command.cycles
            self._engine += command.cycles
            self.busy.append(Stretch(unit="engine", layer=layer, begin=begin, end=self.engine_free))
            if command.waits:
                self._wait(self.engine_free)
        elif isinstance(command, Await):
            self._works(layer, AWAIT)
            self._wait(self.tiles[command.tile])
        else:
            self._works(layer, command.instructions)

    def _transfer(self, layer: int, transfer: Transfer) -> None:
        self._works(layer, self.machine.transfer_instructions(transfer))
        dma = self.machine.dma
        if dma is None:
            self.transfers.append(self.now)
            return
        if len(self.transfers) >= dma.queue:
            self._wait(self.transfers[-dma.queue])
        begin = max(self.now, self.transfers[-1] if self.transfers else 0)
        cycles = self.machine.dma_cycles(transfer)
        self.transfers.append(begin + cycles)
        self._dma += cycles
        self.busy.append(Stretch(unit="dma", layer=layer, begin=begin, end=begin + cycles))

    def _works(self, layer: int, instructions: float) -> None:
        if instructions > 0:
            self.busy.append(Stretch(unit="core", layer=layer, begin=self.now, end=self.now + round(instructions)))
            self.now += round(instructions)

    def _wait(self, until: int) -> None:
        if until > self.now:
            self._waiting += until - self.now
            self.now = until


def alone(program: Program, machine: Machine, *, before: bool = False) -> Times:
    """Return the times of a layer by itself. With `before` its early transfers are done."""
    clock = Clock(machine)
    if before:
        clock.transfers = [0] * sum(transfer.times for transfer in program.ahead)
    else:
        clock.ahead(0, program.ahead)
    clock.now = 0
    return clock.layer(0, program.commands, LAYER)


@dataclass(frozen=True)
class Step:
    """A layer in time: its program, or the core's instructions for it."""

    index: int
    program: Program | None = None
    instructions: float = 0.0


def network_times(steps: Sequence[Step], machine: Machine) -> tuple[dict[int, Times], tuple[Stretch, ...]]:
    """Return the times of each layer by index, and the intervals in which each unit works."""
    clock = Clock(machine)
    ahead: dict[int | None, list[tuple[int, Iterable[Transfer]]]] = {}
    for step in steps:
        if step.program is not None:
            ahead.setdefault(step.program.during, []).append((step.index, step.program.ahead))
    times = {}
    for step in steps:
        program = step.program
        times[step.index] = clock.layer(
            step.index,
            program.commands if program is not None else (),
            LAYER if program is not None else step.instructions,
            ahead.get(step.index, ()),
        )
    return times, tuple(clock.busy)
