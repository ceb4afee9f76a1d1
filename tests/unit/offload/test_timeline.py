"""Commands on core, engine and DMA, by hand."""

from __future__ import annotations

from stages.backends.targets.attached import Dma
from stages.lower.offload.machine import AWAIT, Machine
from stages.lower.offload.program import Await, Function, Start, Work
from stages.lower.offload.timeline import Clock
from tests.support.toy import Toy, ToyParameters

MACHINE = Machine(Toy(ToyParameters()), "l1", 1 << 16, Dma(base=0, bytes_per_cycle=8, fixed_cycles=100, queue=2))
CALL = Function(name="f")


def start(tile: int, cycles: int, *, waits: bool = False) -> Start:
    return Start(tile=tile, call=CALL, cycles=cycles, instructions=20, waits=waits)


def test_the_engine_works_while_the_core_does() -> None:
    commands = (start(0, 500), start(1, 300), Work(call=CALL, instructions=200), Await(tile=0), Await(tile=1))
    times = Clock(MACHINE).layer(0, commands)
    # Tile 0 from 20 to 520, tile 1 behind it to 820.
    assert (times.cycles, times.engine) == (820, 800)
    assert times.core == 20 + 20 + 200 + 2 * AWAIT - AWAIT * 0 and times.waiting == 820 - times.core


def test_a_start_that_waits_keeps_the_core() -> None:
    times = Clock(MACHINE).layer(0, (start(0, 500, waits=True), Work(call=CALL, instructions=200), Await(tile=0)))
    assert times.cycles == 520 + 200 + AWAIT and times.waiting == 500
