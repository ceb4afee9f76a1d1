"""A target's memory map is held against itself and its core when the target is read."""

import re
from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.recipes.targets import load_targets

TARGET = """\
schema: 1
cores:
  board:
    family: riscv
    isa: rv32imac
    word_bits: 32
    compiler: {command: gcc}
    memory:
      rom: {origin: "0x80000000", length: 256M}
      ram: {origin: "0x90000000", length: 64M}
      stack: 16K
    simulator: {kind: spike}
    counter: minstret
"""
RAM = '{origin: "0x90000000", length: 64M}'


def read(folder: Path, old: str, new: str) -> str:
    assert old in TARGET
    (folder / "pipeline.yaml").write_text(TARGET.replace(old, new))
    with pytest.raises(RecipeError) as caught:
        load_targets(folder)
    return str(caught.value)


def test_the_target_is_good(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(TARGET)
    memory = load_targets(tmp_path)["board"].memory
    assert memory is not None and (memory.ram.origin, memory.ram.length) == (0x90000000, 64 << 20)


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        ("{command: gcc}", "{command: gcc -O3}", "7:25", "'gcc -O3' is not the name of a program; its arguments"),
        ("{command: gcc}", "{command: ''}", "7:25", "'' is not the name of a program"),
        ("counter: minstret", "counter: minstret\n    kernels: []", "14:14", "kernels: no kernel folder"),
        ("word_bits: 32", "word_bits: 64", "6:16", "registers of isa rv32imac have 32 bits"),
        ("{kind: spike}", "{kind: spike, isa: rv64imac}", "12:35", "registers of isa rv64imac have 64 bits"),
        ("word_bits: 32", "word_bits: 32\n    vlen: 1024", "7:11", "vlen: should be 128, 256 or 512, is 1024"),
        ("word_bits: 32", "word_bits: 32\n    vlen: 128", "7:5", "the core has no RISC-V vectors: neither isa"),
        ("rv32imac", "rv32imac_zve32x_zvl256b\n    vlen: 128", "6:11", "isa rv32imac_zve32x_zvl256b has at least 256"),
        ("rv32imac", "rv32imac_zve32x\n    vlen: 128", "6:11", "the simulator has a VLEN of 0; add zvl128b to its isa"),
    ],
)
def test_a_core_has_a_compiler_kernels_and_vectors(tmp_path: Path, old: str, new: str, at: str, message: str) -> None:
    told = read(tmp_path, old, new)
    assert told.startswith(f"pipeline.yaml:{at}: ") and message in told
    assert len(told.splitlines()) <= 5


ROM, LENGTH = "rom is at pipeline.yaml:9:12", "length is at pipeline.yaml:10:43"
HIGH, BITS = "goes beyond what 32 bits can address", "word_bits is at pipeline.yaml:6:16"


@pytest.mark.parametrize(
    ("origin", "length", "at", "message", "last"),
    [
        ("0x88000000", "64M", "10:12", "ram: 0x88000000 to 0x8bffffff, overlaps rom, 0x80000000 to 0x8fffffff", ROM),
        ("0x7ffffff0", "32", "10:12", "ram: 0x7ffffff0 to 0x8000000f, overlaps rom", ROM),
        ("0xfc000000", "128M", "10:12", f"ram: 0xfc000000 to 0x103ffffff, {HIGH}", BITS),
        ("0x90000000", "0", "10:43", "ram.length: a region needs at least one byte", ""),
        ("0x90000004", "64M", "10:21", "ram.origin: is 0x90000004, no multiple of 16 bytes", ""),
        ("0x90000000", "65537", "10:43", "ram.length: is 0x10001, no multiple of 16 bytes", ""),
        ("0x90000000", "-16", "10:43", "ram.length: should be greater than or equal to 0, is -16", ""),
        ("0x90000000", "lots", "10:43", "ram.length: a size is a number of bytes", ""),
        ("0x9000000g", "64M", "10:21", "ram.origin: an address is a number", ""),
        ("0x90000000", "999999999999G", "10:43", "ram.length: 1,073,741,823,998,926,258,176 has more than 64 bits", ""),
        ("0x10000000000000000", "64M", "10:21", "ram.origin: 18,446,744,073,709,551,616 has more than 64 bits", ""),
        ("0x90000000", "8K", "11:14", "stack: a stack of 16,384 bytes leaves nothing of the ram's 8,192", LENGTH),
    ],
)
def test_regions(tmp_path: Path, origin: str, length: str, at: str, message: str, last: str) -> None:
    lines = read(tmp_path, RAM, f'{{origin: "{origin}", length: {length}}}').splitlines()
    assert lines[0].startswith(f"pipeline.yaml:{at}: cores.board.memory.{message}")
    assert lines[3:] == ([last] if last else [])


@pytest.mark.parametrize("stack", ["0", "17", "64M", "-1", "much"])
def test_stack(tmp_path: Path, stack: str) -> None:
    message = read(tmp_path, "stack: 16K", f"stack: {stack}")
    assert re.match(r"pipeline\.yaml:11:14: cores\.board\.memory\.stack: ", message)


@pytest.mark.parametrize(
    ("memory", "first", "last"),
    [
        (
            '{rom: {origin: 0, length: 1M}, ram: {origin: "0xffff0000", length: 128K}}',
            "19:49: boards.small.memory.ram: 0xffff0000 to 0x10000ffff, goes beyond what 32 bits can address",
            "word_bits is at pipeline.yaml:6:16",
        ),
        (
            "{rom: {origin: 0, length: 1M}, ram: {origin: 1M, length: 256M}, stack: 64M}",
            "19:84: boards.small.memory.stack: a stack of 67,108,864 bytes is more than the machine of board has",
            "length is at pipeline.yaml:10:43",
        ),
    ],
)
def test_board(tmp_path: Path, memory: str, first: str, last: str) -> None:
    board = f"boards:\n  small:\n    core: board\n    title: Small\n    clock: 1M\n    memory: {memory}\n"
    lines = read(tmp_path, "kind: spike}\n    counter: minstret\n", f"kind: qemu}}\n    counter: qemu-plugin\n{board}")
    assert lines.splitlines()[0] == f"pipeline.yaml:{first}"
    assert lines.splitlines()[3:] == [last]
