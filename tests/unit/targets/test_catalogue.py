"""Cores and boards: what a target has from which, and a firmware for every board that runs."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.catalogue import Board, moved
from stages.backends.targets.flash import Flash
from stages.backends.targets.frequency import parse_frequency
from stages.backends.targets.load import load_catalogue, load_target
from stages.backends.targets.memory import CONSTANT, Memory, Region
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import Source, compile_sources, link

CATALOGUE = load_catalogue()
BOARDS = {name: target for name, target in CATALOGUE.targets().items() if target.board is not None}
MAIN = """
#include "bench.h"
extern char __rom_start[], __rom_end[], __stack_bottom[];
int main(void)
{
    printf("%lx %lx %lx", (unsigned long)(uintptr_t)__rom_start, (unsigned long)(uintptr_t)__rom_end,
           (unsigned long)(uintptr_t)__stack_bottom); /* the lowest of its region */
    return 0;
}
"""


def region(origin: int, length: int, *holds: str, speed: int = 0) -> Region:
    return Region(origin=origin, length=length, holds=holds, speed=speed)


@pytest.mark.parametrize("value, hertz", [(48_000_000, 48_000_000), ("180M", 180_000_000), ("32.768k", 32_768)])
def test_clock(value: object, hertz: int) -> None:
    assert parse_frequency(value) == hertz


@pytest.mark.parametrize("value", ["fast", "", "M", "-1M", "0", "1.5", "nan", "inf", "1e400M", "1T"])
def test_clock_that_is_none(value: str) -> None:
    with pytest.raises(ValidationError, match="a clock is a number of Hz"):
        Board.model_validate({"core": "x", "title": "x", "memory": _memory(), "clock": value})


def test_power_is_a_current_at_a_clock_or_per_mhz() -> None:
    def board(**power: Any) -> Board:
        stated = {"supply_v": 3, "source": "made up", **power}
        return Board.model_validate({"core": "x", "title": "x", "memory": _memory(), "clock": "64M", "power": stated})

    found = [board(ua_per_mhz=50).power, board(current_ma=3.2, clock="64M").power]
    for one in found:
        assert one is not None
        assert one.milliamperes(64_000_000) == 3.2 and one.microjoules(10, 64_000_000) == pytest.approx(96)
    for power, message in (
        ({}, "states either `ua_per_mhz`, or `current_ma` at `clock`"),
        ({"ua_per_mhz": 50, "current_ma": 3.2, "clock": "64M"}, "states either"),
        ({"current_ma": 3.2}, "belong together"),
        ({"current_ma": 3.2, "clock": "48M"}, "stated at 48 MHz, which is not the board's clock; state ua_per_mhz"),
        ({"ua_per_mhz": "50 uA"}, "ua_per_mhz"),
        ({"ua_per_mhz": 0}, "greater than 0"),
    ):
        with pytest.raises(ValidationError, match=re.escape(message)):
            board(**power)


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        (None, "0 to 3 (not stated) wait states in rom, lines of 4 bytes, no cache"),  # 64 MHz, one for every 16
        ({"wait_states": 0}, "memory without wait states"),
        ({"wait_states": [20, 40], "line": 32, "cache_lines": 512, "ways": 8}, "512 of both cached in sets of 8"),
    ],
)
def test_wait_states_of_a_board(stated: Any, told: str) -> None:
    flash = None if stated is None else {"region": "rom", "source": "made up", **stated}
    data = {"core": "cortex-m4", "title": "x", "memory": _memory(), "clock": "64M", "flash": flash}
    core = load_catalogue().model_copy(update={"boards": {"mine": Board.model_validate(data)}})
    found = core.targets()["mine"].flash
    assert found is not None and told in found.description
    assert found.is_range == (stated is None or stated["wait_states"] != 0)


@pytest.mark.parametrize(
    ("flash", "message"),
    [
        ({"wait_states": [3, 2]}, "wait states must rise"),
        ({"wait_states": "5 ns"}, "wait states are a number, or [least, most]"),
        ({"wait_states": [1, 2], "prefetch": True}, "with `prefetch`, wait_states is one number"),
        ({"wait_states": 1, "cache_lines": 4, "data_lines": 2}, "one cache for instructions and data"),
        ({"wait_states": 1, "cache_lines": 6, "ways": 4}, "6 lines do not make sets of 4"),
    ],
)
def test_mistakes_in_flash(flash: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        Flash.model_validate({"region": "rom", "source": "made up", **flash})


def loaded(target: Target, folder: Path, zeros: int) -> list[Any]:
    """What a program with so many bytes of .bss has loaders load."""
    from elftools.elf.elffile import ELFFile

    text = f"int set = 3; int zero[{zeros} / sizeof(int)]; int main(void) {{ return zero[set] + set; }}"
    (folder / "main.c").write_text(text)
    runtime = runtime_for(target)
    sources = [Source(folder / "main.c"), *map(Source, runtime.sources)]
    link(target, runtime, compile_sources(target, runtime, sources, folder / "obj"), folder / "program.elf")
    with (folder / "program.elf").open("rb") as handle:
        return [segment.header for segment in ELFFile(handle).iter_segments("PT_LOAD") if segment["p_memsz"]]


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m33", "rv64-scalar", "rv32-rvp"])
def test_loader_writes_nothing_outside_the_memory_map(name: str, tmp_path: Path) -> None:
    """A loader clears what a segment has in memory and not in the file, from where it is loaded: with .bss behind the
    initial values of variables in ROM, that is beyond ROM's end, or over its start where the bus mirrors it."""
    target = load_target(name)
    small = target.memory.rom.model_copy(update={"length": 128 << 10})
    target = target.model_copy(update={"memory": target.memory.model_copy(update={"rom": small, "stack": 2048})})
    segments = loaded(target, tmp_path, 500_000)
    assert any(segment.p_filesz and segment.p_paddr != segment.p_vaddr for segment in segments)
    for segment in segments:
        start, end = segment.p_paddr, segment.p_paddr + segment.p_memsz
        regions = (target.memory.rom, target.memory.ram)
        assert any(r.origin <= start and end <= r.end for r in regions), (hex(start), hex(end))


@pytest.mark.parametrize("name", BOARDS)
def test_firmware_is_linked_for_the_map_of_the_board(name: str, tmp_path: Path) -> None:
    target = BOARDS[name]
    for segment in loaded(target, tmp_path, 36):
        start, end = segment.p_vaddr, segment.p_vaddr + segment.p_memsz
        regions = target.memory.regions.values()
        assert any(r.origin <= start and end <= r.end for r in regions), (hex(start), hex(end))


@pytest.mark.parametrize("name", BOARDS)
def test_firmware_of_every_board_is_simulated(name: str) -> None:
    """At the board's addresses unless the report says that they were moved."""
    target = BOARDS[name].in_simulator
    run = compile_and_run_c(target, [], MAIN)
    code, stack = target.memory.region_of("code"), target.memory.region_of("stack")
    assert run.stdout.split() == [f"{at:x}" for at in (code.origin, code.end, stack.origin)]


def _memory() -> dict[str, object]:
    return {"rom": {"origin": 0, "length": "64K"}, "ram": {"origin": 65536, "length": "64K"}}


def test_regions_larger_than_the_machine_share_it() -> None:
    core = CATALOGUE.cores["cortex-m4"]
    machine = core.memory
    assert machine is not None
    memory = Memory(
        rom=region(0x0800_0000, 2 << 20, *CONSTANT),
        qspi=region(0x9000_0000, 16 << 20, "weights"),
        dtcm=region(0x2000_0000, 64 << 10, "stack", "data", "arena"),
        sdram=region(0xC000_0000, 32 << 20, "arena"),
        stack=4096,
    )
    there = moved(memory, core)
    assert there is not None
    for part, names in (("code", ("rom", "qspi")), ("data", ("dtcm", "sdram"))):
        room, those = machine.region_of(part), [there.regions[name] for name in names]
        assert room.origin == those[0].origin
        assert those[0].end == those[1].origin
        assert those[1].end <= room.end
        assert those[0].length == memory.regions[names[0]].length
        assert those[1].length >= room.length - those[0].length - 4096
