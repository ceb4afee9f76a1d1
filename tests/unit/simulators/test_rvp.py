"""The plug-ins for P on Spike: every instruction of each draft with many operands, RV32 and RV64."""

import hashlib
import random
import struct
from pathlib import Path

import pytest

from stages.backends.riscv.instructions.declaration import Instruction, instruction_set, versions
from stages.backends.riscv.instructions.model import execute
from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.load import load_target
from stages.backends.toolchain.compiler import Source
from tests.conftest import GOLDEN

# Each field width's corners, repeated over a register, and their mixtures.
CORNERS = (0, 1, 0x7F, 0x80, 0x81, 0xFF, 0x7FFF, 0x8000, 0x8001, 0x7FFFFFFF, 0x80000000, 0x80008000, 0x80808080)
OPERANDS = 48
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


def assembly(xlen: int, words: list[str]) -> str:
    """run_cases(a0: operands, a1: results): per word a loop that runs one instruction on every operand triple.

    rd, rs1, rs2 are a0, a2, a4. A result is 16 bytes: rd (on RV32 with the register after it), then vxsat.
    """
    loads = {
        64: "ld a0, 0(s0); ld a2, 8(s0); ld a4, 16(s0)",
        32: "lw a0, 0(s0); lw a1, 4(s0); lw a2, 8(s0); lw a3, 12(s0); lw a4, 16(s0); lw a5, 20(s0)",
    }[xlen]
    stores = {64: "sd a0, 0(s1); sd t0, 8(s1)", 32: "sw a0, 0(s1); sw a1, 4(s1); sw t0, 8(s1); sw zero, 12(s1)"}[xlen]
    lines = [".globl run_cases", "run_cases: mv t3, a0; mv t4, s0; mv t5, s1; mv s1, a1"]
    for word in words:
        lines += [
            f"mv s0, t3; li t1, {OPERANDS}",
            f"1: {loads}; csrwi vxsat, 0; .4byte 0x{word}; csrr t0, vxsat; {stores}",
            "addi s0, s0, 24; addi s1, s1, 16; addi t1, t1, -1; bnez t1, 1b",
        ]
    return "\n".join([*lines, "mv s0, t4; mv s1, t5; ret", ""]).replace("vxsat", "0x009")


def cases(draft: str, xlen: int) -> list[tuple[str, Instruction, int]]:
    """Label, instruction and immediate of each case."""
    found = []
    for name, instruction in instruction_set("rvp", draft).on(xlen).items():
        size = instruction.immediate_bits
        immediates = sorted({0, 1, (1 << (size - 1)) - 1, (1 << size) - 1}) if size else [0]
        label = name.removesuffix(".rv32")
        found += [(f"{label} {n}" if size else label, instruction, n) for n in immediates]
    return found


@pytest.mark.parametrize("xlen", [64, 32])
@pytest.mark.parametrize("draft", versions("rvp"))
def test_every_instruction_computes_what_its_declaration_says(draft: str, xlen: int, tmp_path: Path) -> None:
    """Results and vxsat equal those of the Python model; for 0.9.11 also those of a model from its specification.

    A line of these golden files has an instruction's word, the digest of its results, its name and immediate.
    """
    listed = cases(draft, xlen)
    words = [each.word({"d": 10, "a": 12, "b": 14, "c": 10}, n) for _, each, n in listed]
    triples = operand_triples(seed=xlen)
    (tmp_path / "cases.S").write_text(assembly(xlen, [f"{word:08x}" for word in words]))
    core = load_target(f"rv{xlen}-rvp").model_copy(update={"extensions": {"rvp": draft}})
    run = compile_and_run_c(
        core,
        [Source(tmp_path / "cases.S")],
        MAIN,
        flags=("-O1", f"-DOPERANDS={OPERANDS}", f"-DCASES={len(words)}"),
        files={"operands.bin": b"".join(struct.pack("<3Q", *triple) for triple in triples)},
        outputs=("results.bin",),
    )
    results, size = run.files["results.bin"], 16 * OPERANDS
    assert len(results) == size * len(words)
    digests = {}
    for number, (label, instruction, n) in enumerate(listed):
        block = results[number * size : (number + 1) * size]
        digests[label] = f"{words[number]:08x} {hashlib.sha256(block).hexdigest()[:16]}"
        mask = (1 << (xlen if "d" not in instruction.pairs else 64)) - 1
        for (d, a, b), (result, vxsat) in list(zip(triples, struct.iter_unpack("<2Q", block), strict=True))[::2]:
            expected = execute(instruction, xlen, {"d": d, "a": a, "b": b, "c": d, "n": n})
            assert (result & mask, bool(vxsat)) == expected, f"{label}: {d:#x} {a:#x} {b:#x}"
    golden = GOLDEN / f"rv{xlen}_p{draft}_instructions.txt"
    if golden.exists():
        lines = (line.split(maxsplit=2) for line in golden.read_text().splitlines())
        assert digests == {label: f"{word} {digest}" for word, digest, label in lines}
