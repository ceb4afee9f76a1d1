"""The P-extension plug-in against the model of the specification: every instruction, RV32 and RV64, on Spike."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

import pytest

from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.load import load_target
from stages.backends.toolchain.compiler import Source
from tests.support.rvp import compute
from tests.support.rvp.encodings import ENCODINGS, Encoding

# Each field width's corners, repeated over a register, and their mixtures.
CORNERS = (0, 1, 0x7F, 0x80, 0x81, 0xFF, 0x7FFF, 0x8000, 0x8001, 0x7FFFFFFF, 0x80000000, 0x80008000, 0x80808080)
OPERANDS = 48
RD, RS1, RS2 = 10, 12, 14  # even registers: on RV32 each is the low one of a pair

MAIN = """
#include "board.h"
static uint64_t operands[3 * OPERANDS];
static uint64_t results[2 * OPERANDS * CASES];
void run_cases(const uint64_t *operands, uint64_t *results);
int main(void)
{
    if (board_read(board_open_read("operands.bin"), operands, sizeof operands) < 0)
        return 1;
    run_cases(operands, results);
    return board_write(board_open_write("results.bin"), results, sizeof results);
}
"""


@dataclass(frozen=True)
class Case:
    encoding: Encoding
    immediate: int

    @property
    def word(self) -> int:
        rs3 = RD if self.encoding.has_rs3 else 0
        return self.encoding.word(RD, RS1, RS2 if self.encoding.has_rs2 else self.immediate, rs3)


def cases(xlen: int) -> list[Case]:
    """Every instruction for that register width; those with an immediate with its corners and its middle."""
    found: list[Case] = []
    for entry in ENCODINGS:
        if xlen in entry.xlens:
            top = (1 << entry.immediate_bits) - 1
            found += [Case(entry, value) for value in sorted({0, 1, top // 2, top})] if top else [Case(entry, 0)]
    return found


def operand_triples(seed: int) -> list[tuple[int, int, int]]:
    """64-bit operands: half of them corners, half random."""
    generator = random.Random(seed)

    def operand() -> int:
        if generator.random() < 0.5:
            return generator.getrandbits(64)
        low, high = generator.choice(CORNERS), generator.choice(CORNERS)
        return high << 32 | low

    equal = [(0, corner << 32 | corner, corner << 32 | corner) for corner in CORNERS]
    return equal + [(operand(), operand(), operand()) for _ in range(OPERANDS - len(equal))]


def assembly(xlen: int, wanted: list[Case]) -> str:
    """run_cases(a0: operands, a1: results): per case a loop that runs one instruction on every operand triple.

    A result is 16 bytes: rd (on RV32 with the register after it), then vxsat.
    """
    loads = {
        64: "ld a0, 0(s0); ld a2, 8(s0); ld a4, 16(s0)",
        32: "lw a0, 0(s0); lw a1, 4(s0); lw a2, 8(s0); lw a3, 12(s0); lw a4, 16(s0); lw a5, 20(s0)",
    }[xlen]
    stores = {64: "sd a0, 0(s1); sd t0, 8(s1)", 32: "sw a0, 0(s1); sw a1, 4(s1); sw t0, 8(s1); sw zero, 12(s1)"}[xlen]
    lines = [".globl run_cases", "run_cases: mv t3, a0; mv t4, s0; mv t5, s1; mv s1, a1"]
    for case in wanted:
        lines += [
            f"mv s0, t3; li t1, {OPERANDS}",
            f"1: {loads}; csrwi vxsat, 0; .4byte {case.word:#x}; csrr t0, vxsat; {stores}",
            "addi s0, s0, 24; addi s1, s1, 16; addi t1, t1, -1; bnez t1, 1b",
        ]
    return "\n".join([*lines, "mv s0, t4; mv s1, t5; ret", ""]).replace("vxsat", "0x009")


@pytest.mark.parametrize("xlen", [64, 32])
def test_every_instruction_computes_what_the_specification_says(xlen, tmp_path):
    wanted = cases(xlen)
    triples = operand_triples(seed=xlen)
    (tmp_path / "cases.S").write_text(assembly(xlen, wanted))
    run = compile_and_run_c(
        load_target(f"rv{xlen}-rvp"),
        [Source(tmp_path / "cases.S")],
        MAIN,
        flags=("-O1", f"-DOPERANDS={OPERANDS}", f"-DCASES={len(wanted)}"),
        files={"operands.bin": b"".join(struct.pack("<3Q", *triple) for triple in triples)},
        outputs=("results.bin",),
    )
    results = struct.iter_unpack("<2Q", run.files["results.bin"])
    wrong = []
    for case in wanted:
        for (rd, rs1, rs2), (result, ov) in zip(triples, results, strict=False):
            expected, expected_ov = compute(case.encoding.name, xlen, rd=rd, rs1=rs1, rs2=rs2, imm=case.immediate)
            if xlen == 32 and "rd" not in case.encoding.pairs.split():
                expected |= rd >> 32 << 32  # the register after rd is untouched
            if (result, ov) != (expected, expected_ov):
                wrong.append(f"{case.encoding.name} imm={case.immediate} {rd:#x} {rs1:#x} {rs2:#x}: {result:#x}, {ov}")
    assert next(results, None) is None
    assert not wrong, "\n".join(wrong[:10])
