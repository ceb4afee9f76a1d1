"""The memory that a target declares in pipeline.yaml is there to its last word, and a program may fill all of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from stages.compile.toolchain import Source, compile_sources, link
from stages.simulators.bench import compile_and_run_c
from stages.targets.load import load_target
from stages.targets.runtime import runtime_for
from stages.targets.spec import Target

CORTEX_M = ["cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"]
RISCV = ["rv64-scalar", "rv32-rvp"]
ROOM = 64 << 10  # for the test's own code, variables and stack, in each region
MULTIPLIER = 2654435761  # odd, so that no two words of a region are equal

needs_arm = pytest.mark.skipif(
    not all(map(shutil.which, ("qemu-system-arm", "arm-none-eabi-gcc"))), reason="QEMU or the compiler is not installed"
)

MAIN = """
#include "bench.h"
extern const uint32_t rom_words[];
extern char __rom_end[], __ram_start[], __ram_end[];
static volatile uint32_t ram_words[RAM_WORDS];

int main(void)
{
    unsigned wrong = 0, set = 0;
    volatile uint32_t *first = (uint32_t *)__ram_start, *last = (uint32_t *)((uintptr_t)__ram_end - 4);
    for (uint32_t i = 0; i < RAM_WORDS; i++)
        set += ram_words[i] != 0;
    for (uint32_t i = 0; i < RAM_WORDS; i++)
        ram_words[i] = ~i * MULTIPLIER;
    *first = 1;
    *last = 2;
    for (uint32_t i = 0; i < ROM_WORDS; i++)
        wrong += rom_words[i] != i * MULTIPLIER;
    for (uint32_t i = 0; i < RAM_WORDS; i++)
        wrong += ram_words[i] != ~i * MULTIPLIER;
    (void)*(volatile uint32_t *)((uintptr_t)__rom_end - 4);
    printf("%u set, %u wrong, %u at the ends", set, wrong, (unsigned)(*first + *last));
    return 0;
}
"""


def filling_program(target: Target, folder: Path) -> tuple[Path, tuple[str, ...]]:
    """An assembly file with constants for nearly all ROM, and flags with which MAIN checks them and nearly all RAM."""
    rom, ram = ((region.length - ROOM) // 4 for region in (target.memory.rom, target.memory.ram))
    (folder / "words.bin").write_bytes((np.arange(rom, dtype=np.uint32) * np.uint32(MULTIPLIER)).tobytes())
    source = folder / "words.S"
    section = '.section .rodata.words, "a", %progbits\n.balign 4'
    source.write_text(f'{section}\n.globl rom_words\nrom_words: .incbin "{folder}/words.bin"\n')
    return source, ("-O2", f"-DROM_WORDS={rom}u", f"-DRAM_WORDS={ram}u", f"-DMULTIPLIER={MULTIPLIER}u")


@needs_arm
@pytest.mark.parametrize("name", CORTEX_M)
def test_machine_has_all_the_memory_that_the_target_declares(name, tmp_path):
    """A mirror would show as words that changed, memory that is not there as a fault."""
    target = load_target(name)
    source, flags = filling_program(target, tmp_path)
    run = compile_and_run_c(target, [source], MAIN, flags=flags)
    assert run.stdout == "0 set, 0 wrong, 3 at the ends"


@pytest.mark.parametrize("name", [*CORTEX_M, *RISCV])
def test_loader_writes_nothing_outside_the_memory_map(name, tmp_path):
    """A loader clears what a segment has in memory and not in the file, from where it is loaded: with .bss behind the
    initial values of variables in ROM, that is beyond ROM's end, or over its start where the bus mirrors it."""
    from elftools.elf.elffile import ELFFile

    target = load_target(name)
    if shutil.which(target.compiler.command) is None:
        pytest.skip(f"{target.compiler.command} is not installed")
    source = tmp_path / "main.c"
    source.write_text("int set = 3; int zero[500000 / sizeof(int)]; int main(void) { return zero[set] + set; }")
    small = target.memory.rom.model_copy(update={"length": 128 << 10})
    target = target.model_copy(update={"memory": target.memory.model_copy(update={"rom": small, "stack": 2048})})
    runtime = runtime_for(target)
    sources = [Source(source), *map(Source, runtime.sources)]
    elf = tmp_path / "program.elf"
    link(target, runtime, compile_sources(target, runtime, sources, tmp_path / "obj"), elf)
    with elf.open("rb") as handle:
        loaded = [segment.header for segment in ELFFile(handle).iter_segments("PT_LOAD") if segment["p_memsz"]]
    assert any(segment.p_filesz and segment.p_paddr != segment.p_vaddr for segment in loaded)
    for segment in loaded:
        start, end = segment.p_paddr, segment.p_paddr + segment.p_memsz
        regions = (target.memory.rom, target.memory.ram)
        assert any(r.origin <= start and end <= r.origin + r.length for r in regions), (hex(start), hex(end))
