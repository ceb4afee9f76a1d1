"""Commands on core, engine and DMA, by hand."""

from __future__ import annotations

from stages.offload.machine import AWAIT, SETTLE, TRANSFER, Machine
from stages.offload.program import Await, Function, Place, Program, Settle, Start, Transfer, Work
from stages.offload.timeline import Clock, Step, network
from stages.targets.attached import Dma
from tests.support.toy import Toy, ToyParameters

MACHINE = Machine(Toy(ToyParameters()), "l1", 1 << 16, Dma(base=0, bytes_per_cycle=8, fixed_cycles=100, queue=2))
CALL = Function(name="f")


def transfer(count: int) -> Transfer:
    return Transfer(to=Place(role="scratch:a"), source=Place(role="input:0"), bytes=count)


def start(tile: int, cycles: int, *, waits: bool = False) -> Start:
    return Start(tile=tile, call=CALL, cycles=cycles, instructions=20, waits=waits)


def test_the_engine_works_while_the_core_does() -> None:
    commands = (start(0, 500), start(1, 300), Work(call=CALL, instructions=200), Await(tile=0), Await(tile=1))
    times = Clock(MACHINE).layer(0, commands)
    # Tile 0 from 20 to 520, tile 1 behind it to 820.
    assert (times.cycles, times.engine) == (820, 800)
    assert times.core == 20 + 20 + 200 + 2 * AWAIT - AWAIT * 0 and times.waiting == 820 - times.core


def test_transfers_are_done_in_order_and_the_queue_has_an_end() -> None:
    clock = Clock(MACHINE)
    times = clock.layer(0, (transfer(800), transfer(1600), transfer(8), Settle(left=1)))
    # 100 + 100 from the first one's start; 100 + 200; the third waits for a place until the first is done.
    first = TRANSFER + 200
    assert clock.transfers == [first, first + 300, first + 300 + 101]
    assert times.dma == 200 + 300 + 101
    assert times.cycles == first + 300 and times.core == 3 * TRANSFER + SETTLE


def test_a_start_that_waits_keeps_the_core() -> None:
    times = Clock(MACHINE).layer(0, (start(0, 500, waits=True), Work(call=CALL, instructions=200), Await(tile=0)))
    assert times.cycles == 520 + 200 + AWAIT and times.waiting == 500


def test_what_comes_ahead_belongs_to_the_layer_that_runs_then() -> None:
    fields = {"buffers": (), "rows": 1, "channels": 1, "wait": "w"}
    program = Program(commands=(Settle(left=0),), ahead=(transfer(8000),), during=3, **fields)
    times, stretches = network([Step(3, instructions=5000.0), Step(4, program)], MACHINE)
    assert times[3].dma == 1100 and times[3].cycles == 5000 + TRANSFER and times[4].waiting == 0
    assert [(one.layer, one.begin, one.end) for one in stretches if one.unit == "dma"] == [
        (4, TRANSFER, TRANSFER + 1100)
    ]
