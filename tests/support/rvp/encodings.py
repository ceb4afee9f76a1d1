"""Encodings of the instructions of RISC-V P, draft 0.9.11, that the plug-in has.

Source: riscv-opcodes at be98b702, unratified/{rv_zpn,rv64_zpn,rv32_zpn,rv_zpsf,rv32_zpsf,rv_zbpbo}. GCC does not know
them; in C they are `__asm__(".insn r 0x77, funct3, funct7, %0, %1, %2" ...)`.
"""

from __future__ import annotations

from dataclasses import dataclass

OP_P, OP, OP_IMM = 0x77, 0x33, 0x13
RV32, RV64, BOTH = frozenset({32}), frozenset({64}), frozenset({32, 64})


@dataclass(frozen=True)
class Encoding:
    """One instruction.

    match           the instruction word with all operand fields zero
    immediate_bits  width of the immediate at bit 20; 0 when there is none
    has_rs2         whether bits 24..20 name a register
    xlens           the register widths it exists for
    has_rs3         whether bits 31..27 name a register
    pairs           operands that are even/odd register pairs on RV32, such as "rd rs1"
    """

    name: str
    match: int
    immediate_bits: int = 0
    has_rs2: bool = False
    has_rs3: bool = False
    xlens: frozenset[int] = BOTH
    pairs: str = ""

    @property
    def funct7(self) -> int:
        return self.match >> 25

    @property
    def funct3(self) -> int:
        return self.match >> 12 & 7

    def word(self, rd: int, rs1: int, rs2_or_immediate: int = 0, rs3: int = 0) -> int:
        """The instruction word. Raises ValueError when the last operand does not fit or must be absent."""
        limit = 32 if self.has_rs2 else 1 << self.immediate_bits
        if not 0 <= rs2_or_immediate < limit:
            raise ValueError(f"{self.name}: operand {rs2_or_immediate} is not in 0..{limit - 1}")
        if rs3 and not self.has_rs3:
            raise ValueError(f"{self.name}: has no third source")
        return self.match | rs3 << 27 | rs2_or_immediate << 20 | rs1 << 15 | rd << 7


def _register(
    name: str, funct7: int, funct3: int, *, xlens: frozenset[int] = BOTH, pairs: str = "", opcode: int = OP_P
) -> Encoding:
    return Encoding(name, funct7 << 25 | funct3 << 12 | opcode, has_rs2=True, xlens=xlens, pairs=pairs)


def _unary(
    name: str, funct7: int, field: int, funct3: int, *, xlens: frozenset[int] = BOTH, opcode: int = OP_P
) -> Encoding:
    return Encoding(name, funct7 << 25 | field << 20 | funct3 << 12 | opcode, xlens=xlens)


def _immediate(name: str, bits: int, high: int, funct3: int, *, xlens: frozenset[int] = BOTH) -> Encoding:
    return Encoding(name, high << (20 + bits) | funct3 << 12 | OP_P, immediate_bits=bits, xlens=xlens)


ENCODINGS: tuple[Encoding, ...] = (
    _register("smaqa", 0x64, 0),
    _register("smaqa.su", 0x65, 0),
    _register("umaqa", 0x66, 0),
    _register("pbsad", 0x7E, 0),
    _register("pbsada", 0x7F, 0),
    _register("add8", 0x24, 0),
    _register("sub8", 0x25, 0),
    _register("radd8", 0x04, 0),
    _register("uradd8", 0x14, 0),
    _register("rsub8", 0x05, 0),
    _register("ursub8", 0x15, 0),
    _register("kadd8", 0x0C, 0),
    _register("ukadd8", 0x1C, 0),
    _register("ksub8", 0x0D, 0),
    _register("uksub8", 0x1D, 0),
    _register("smin8", 0x44, 0),
    _register("umin8", 0x4C, 0),
    _register("smax8", 0x45, 0),
    _register("umax8", 0x4D, 0),
    _register("cmpeq8", 0x27, 0),
    _register("scmplt8", 0x07, 0),
    _register("ucmplt8", 0x17, 0),
    _register("scmple8", 0x0F, 0),
    _register("ucmple8", 0x1F, 0),
    _unary("kabs8", 0x56, 0x10, 0),
    _unary("clz8", 0x57, 0x01, 0),
    _unary("clrs8", 0x57, 0x00, 0),
    _immediate("sclip8", 3, 0x118, 0),
    _immediate("uclip8", 3, 0x11A, 0),
    _register("add16", 0x20, 0),
    _register("sub16", 0x21, 0),
    _register("radd16", 0x00, 0),
    _register("uradd16", 0x10, 0),
    _register("rsub16", 0x01, 0),
    _register("ursub16", 0x11, 0),
    _register("kadd16", 0x08, 0),
    _register("ukadd16", 0x18, 0),
    _register("ksub16", 0x09, 0),
    _register("uksub16", 0x19, 0),
    _register("smin16", 0x40, 0),
    _register("umin16", 0x48, 0),
    _register("smax16", 0x41, 0),
    _register("umax16", 0x49, 0),
    _register("cmpeq16", 0x26, 0),
    _register("scmplt16", 0x06, 0),
    _register("ucmplt16", 0x16, 0),
    _register("scmple16", 0x0E, 0),
    _register("ucmple16", 0x1E, 0),
    _unary("kabs16", 0x56, 0x11, 0),
    _unary("clz16", 0x57, 0x09, 0),
    _unary("clrs16", 0x57, 0x08, 0),
    _immediate("sclip16", 4, 0x84, 0),
    _immediate("uclip16", 4, 0x85, 0),
    _register("add32", 0x20, 2, xlens=RV64),
    _register("sub32", 0x21, 2, xlens=RV64),
    _register("radd32", 0x00, 2, xlens=RV64),
    _register("uradd32", 0x10, 2, xlens=RV64),
    _register("rsub32", 0x01, 2, xlens=RV64),
    _register("ursub32", 0x11, 2, xlens=RV64),
    _register("kadd32", 0x08, 2, xlens=RV64),
    _register("ukadd32", 0x18, 2, xlens=RV64),
    _register("ksub32", 0x09, 2, xlens=RV64),
    _register("uksub32", 0x19, 2, xlens=RV64),
    _register("smin32", 0x48, 2, xlens=RV64),
    _register("umin32", 0x50, 2, xlens=RV64),
    _register("smax32", 0x49, 2, xlens=RV64),
    _register("umax32", 0x51, 2, xlens=RV64),
    _unary("kabs32", 0x56, 0x12, 0, xlens=RV64),
    _unary("clz32", 0x57, 0x19, 0),
    _unary("clrs32", 0x57, 0x18, 0),
    _immediate("sclip32", 5, 0x72, 0),
    _immediate("uclip32", 5, 0x7A, 0),
    _register("sll8", 0x2E, 0),
    _immediate("slli8", 3, 0xF8, 0),
    _register("srl8", 0x2D, 0),
    _immediate("srli8", 3, 0xF4, 0),
    _register("srl8.u", 0x35, 0),
    _immediate("srli8.u", 3, 0xF5, 0),
    _register("sra8", 0x2C, 0),
    _immediate("srai8", 3, 0xF0, 0),
    _register("sra8.u", 0x34, 0),
    _immediate("srai8.u", 3, 0xF1, 0),
    _register("ksll8", 0x36, 0),
    _immediate("kslli8", 3, 0xF9, 0),
    _register("kslra8", 0x2F, 0),
    _register("kslra8.u", 0x37, 0),
    _register("sll16", 0x2A, 0),
    _immediate("slli16", 4, 0x74, 0),
    _register("srl16", 0x29, 0),
    _immediate("srli16", 4, 0x72, 0),
    _register("srl16.u", 0x31, 0),
    _immediate("srli16.u", 4, 0x73, 0),
    _register("sra16", 0x28, 0),
    _immediate("srai16", 4, 0x70, 0),
    _register("sra16.u", 0x30, 0),
    _immediate("srai16.u", 4, 0x71, 0),
    _register("ksll16", 0x32, 0),
    _immediate("kslli16", 4, 0x75, 0),
    _register("kslra16", 0x2B, 0),
    _register("kslra16.u", 0x33, 0),
    _register("sll32", 0x2A, 2, xlens=RV64),
    _immediate("slli32", 5, 0x3A, 2, xlens=RV64),
    _register("srl32", 0x29, 2, xlens=RV64),
    _immediate("srli32", 5, 0x39, 2, xlens=RV64),
    _register("srl32.u", 0x31, 2, xlens=RV64),
    _immediate("srli32.u", 5, 0x41, 2, xlens=RV64),
    _register("sra32", 0x28, 2, xlens=RV64),
    _immediate("srai32", 5, 0x38, 2, xlens=RV64),
    _register("sra32.u", 0x30, 2, xlens=RV64),
    _immediate("srai32.u", 5, 0x40, 2, xlens=RV64),
    _register("ksll32", 0x32, 2, xlens=RV64),
    _immediate("kslli32", 5, 0x42, 2, xlens=RV64),
    _register("kslra32", 0x2B, 2, xlens=RV64),
    _register("kslra32.u", 0x33, 2, xlens=RV64),
    _register("smbb16", 0x04, 1),
    _register("smbt16", 0x0C, 1),
    _register("smtt16", 0x14, 1),
    _register("kmabb", 0x2D, 1),
    _register("kmabt", 0x35, 1),
    _register("kmatt", 0x3D, 1),
    _register("kmda", 0x1C, 1),
    _register("kmxda", 0x1D, 1),
    _register("smds", 0x2C, 1),
    _register("smdrs", 0x34, 1),
    _register("smxds", 0x3C, 1),
    _register("kmada", 0x24, 1),
    _register("kmaxda", 0x25, 1),
    _register("kmsda", 0x26, 1),
    _register("kmsxda", 0x27, 1),
    _register("kmads", 0x2E, 1),
    _register("kmadrs", 0x36, 1),
    _register("kmaxds", 0x3E, 1),
    _register("khm8", 0x47, 0),
    _register("khmx8", 0x4F, 0),
    _register("khm16", 0x43, 0),
    _register("khmx16", 0x4B, 0),
    _register("smmul", 0x20, 1, xlens=RV64),
    _register("smmul.u", 0x28, 1),
    _register("kwmmul", 0x31, 1),
    _register("kwmmul.u", 0x39, 1),
    _register("kmmac", 0x30, 1),
    _register("kmmac.u", 0x38, 1),
    _register("kmmsb", 0x21, 1),
    _register("kmmsb.u", 0x29, 1),
    _register("smmwb", 0x22, 1),
    _register("kmmwb2", 0x47, 1),
    _register("kmmawb", 0x23, 1),
    _register("kmmawb2", 0x67, 1),
    _register("smmwb.u", 0x2A, 1),
    _register("kmmwb2.u", 0x4F, 1),
    _register("kmmawb.u", 0x2B, 1),
    _register("kmmawb2.u", 0x6F, 1),
    _register("smmwt", 0x32, 1),
    _register("kmmwt2", 0x57, 1),
    _register("kmmawt", 0x33, 1),
    _register("kmmawt2", 0x77, 1),
    _register("smmwt.u", 0x3A, 1),
    _register("kmmwt2.u", 0x5F, 1),
    _register("kmmawt.u", 0x3B, 1),
    _register("kmmawt2.u", 0x7F, 1),
    _register("smalbb", 0x44, 1, pairs="rd"),
    _register("smalbt", 0x4C, 1, pairs="rd"),
    _register("smaltt", 0x54, 1, pairs="rd"),
    _register("smalda", 0x46, 1, pairs="rd"),
    _register("smalxda", 0x4E, 1, pairs="rd"),
    _register("smslda", 0x56, 1, pairs="rd"),
    _register("smslxda", 0x5E, 1, pairs="rd"),
    _register("smalds", 0x45, 1, pairs="rd"),
    _register("smaldrs", 0x4D, 1, pairs="rd"),
    _register("smalxds", 0x55, 1, pairs="rd"),
    _register("smal", 0x2F, 1, pairs="rd rs1"),
    _register("smar64", 0x42, 1, pairs="rd"),
    _register("smsr64", 0x43, 1, pairs="rd"),
    _register("umar64", 0x52, 1, pairs="rd"),
    _register("umsr64", 0x53, 1, pairs="rd"),
    _register("kmar64", 0x4A, 1, pairs="rd"),
    _register("kmsr64", 0x4B, 1, pairs="rd"),
    _register("ukmar64", 0x5A, 1, pairs="rd"),
    _register("ukmsr64", 0x5B, 1, pairs="rd"),
    _register("mulsr64", 0x70, 1, pairs="rd"),
    _register("mulr64", 0x78, 1, pairs="rd"),
    _register("smul8", 0x54, 0, pairs="rd"),
    _register("smulx8", 0x55, 0, pairs="rd"),
    _register("umul8", 0x5C, 0, pairs="rd"),
    _register("umulx8", 0x5D, 0, pairs="rd"),
    _register("smul16", 0x50, 0, pairs="rd"),
    _register("smulx16", 0x51, 0, pairs="rd"),
    _register("umul16", 0x58, 0, pairs="rd"),
    _register("umulx16", 0x59, 0, pairs="rd"),
    _register("add64", 0x60, 1, xlens=RV32, pairs="rd rs1 rs2"),
    _register("sub64", 0x61, 1, xlens=RV32, pairs="rd rs1 rs2"),
    _register("radd64", 0x40, 1, pairs="rd rs1 rs2"),
    _register("uradd64", 0x50, 1, pairs="rd rs1 rs2"),
    _register("rsub64", 0x41, 1, pairs="rd rs1 rs2"),
    _register("ursub64", 0x51, 1, pairs="rd rs1 rs2"),
    _register("kadd64", 0x48, 1, pairs="rd rs1 rs2"),
    _register("ukadd64", 0x58, 1, pairs="rd rs1 rs2"),
    _register("ksub64", 0x49, 1, pairs="rd rs1 rs2"),
    _register("uksub64", 0x59, 1, pairs="rd rs1 rs2"),
    _register("smbt32", 0x0C, 2, xlens=RV64),
    _register("smtt32", 0x14, 2, xlens=RV64),
    _register("pkbb16", 0x07, 1, xlens=RV64),
    _register("pkbt16", 0x0F, 1),
    _register("pktb16", 0x1F, 1),
    _register("pktt16", 0x17, 1, xlens=RV64),
    _register("pkbt32", 0x0F, 2, xlens=RV64),
    _register("pktb32", 0x1F, 2, xlens=RV64),
    _unary("sunpkd810", 0x56, 0x08, 0),
    _unary("sunpkd820", 0x56, 0x09, 0),
    _unary("sunpkd830", 0x56, 0x0A, 0),
    _unary("sunpkd831", 0x56, 0x0B, 0),
    _unary("sunpkd832", 0x56, 0x13, 0),
    _unary("zunpkd810", 0x56, 0x0C, 0),
    _unary("zunpkd820", 0x56, 0x0D, 0),
    _unary("zunpkd830", 0x56, 0x0E, 0),
    _unary("zunpkd831", 0x56, 0x0F, 0),
    _unary("zunpkd832", 0x56, 0x17, 0),
    _immediate("insb", 3, 0x158, 0, xlens=RV64),
    _immediate("insb", 2, 0x2B0, 0, xlens=RV32),
    _unary("rev8.h", 0x34, 0x08, 5, opcode=OP_IMM),
    Encoding("cmix", 3 << 25 | 1 << 12 | OP, has_rs2=True, has_rs3=True),
    _register("pack", 0x04, 4, opcode=OP),
    _register("packu", 0x24, 4, opcode=OP),
    _register("kaddw", 0x00, 1),
    _register("ukaddw", 0x08, 1),
    _register("ksubw", 0x01, 1),
    _register("uksubw", 0x09, 1),
    _register("raddw", 0x10, 1),
    _register("uraddw", 0x18, 1),
    _register("rsubw", 0x11, 1),
    _register("ursubw", 0x19, 1),
    _register("kaddh", 0x02, 1),
    _register("ukaddh", 0x0A, 1),
    _register("ksubh", 0x03, 1),
    _register("uksubh", 0x0B, 1),
    _unary("kabsw", 0x56, 0x14, 0),
    _register("ksllw", 0x13, 1),
    _immediate("kslliw", 5, 0x1B, 1),
    _register("kslraw", 0x37, 1),
    _register("kslraw.u", 0x3F, 1),
    _immediate("sraiw.u", 5, 0x1A, 1, xlens=RV64),
    _register("sra.u", 0x12, 1),
    _immediate("srai.u", 6, 0x35, 1, xlens=RV64),
    _immediate("srai.u", 5, 0x6A, 1, xlens=RV32),
    _register("ave", 0x70, 0),
    _register("maddr32", 0x62, 1),
    _register("msubr32", 0x63, 1),
    _register("max", 0x05, 6, opcode=OP),
    _register("min", 0x05, 4, opcode=OP),
)


def encoding(name: str, xlen: int) -> Encoding:
    """The encoding of `name` for registers of `xlen` bits. Raises KeyError when there is none."""
    for candidate in ENCODINGS:
        if candidate.name == name and xlen in candidate.xlens:
            return candidate
    raise KeyError(f"no instruction {name} on RV{xlen}")
