"""What each instruction of RISC-V P, draft 0.9.11, computes: a model in Python integers.

Written from "RISC-V P Extension Proposal", version 0.9.11-draft-20211209. The tests hold the Spike plug-in against it
for every instruction of encodings.py, and the design of a kernel can be tried out on it.
"""

from __future__ import annotations

from tests.support.rvp.encodings import encoding
from tests.support.rvp.fields import Machine, Semantics, Sources
from tests.support.rvp.move import moves
from tests.support.rvp.multiply import multiplications
from tests.support.rvp.scalar import scalars
from tests.support.rvp.simd import shifts, simd

SEMANTICS: dict[str, Semantics] = multiplications() | moves() | scalars()
for _bits in (8, 16, 32):
    SEMANTICS |= simd(_bits) | shifts(_bits)


def compute(name: str, xlen: int, *, rd: int = 0, rs1: int = 0, rs2: int = 0, imm: int = 0) -> tuple[int, bool]:
    """The result of one instruction as an unsigned integer, and whether it sets vxsat.OV.

    Operands and result are 64 bits wide where the instruction has a register pair, `xlen` bits otherwise.
    Raises KeyError for an instruction that does not exist for that register width.
    """
    pairs = encoding(name, xlen).pairs.split()
    machine = Machine(xlen)
    narrow = (1 << xlen) - 1
    operands = {
        key: value if key in pairs else value & narrow for key, value in (("rd", rd), ("rs1", rs1), ("rs2", rs2))
    }
    result = SEMANTICS[name](machine, Sources(**operands, imm=imm))
    return result & ((1 << (64 if "rd" in pairs else xlen)) - 1), machine.ov
