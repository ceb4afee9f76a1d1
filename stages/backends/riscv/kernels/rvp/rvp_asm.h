/* RISC-V P, draft 0.9.11, for assembly: its instructions through .insn, which GNU as knows without the extension.
 *
 * Encodings: riscv-opcodes be98b702, unratified/{rv_zpn,rv64_zpn,rv_zbpbo}. Semantics: riscv-p-spec, P-ext-proposal,
 * 0.9.11. On RV32 the extension has pkbb16 and pkbb32 under one name: pack.
 */
#ifndef FIRMLINE_RVP_ASM_H
#define FIRMLINE_RVP_ASM_H

#if __riscv_xlen == 64
#define REGISTER_BYTES 8
#define REGISTER_SHIFT 3
#define LANES 2                       /* 32-bit lanes of a register */
#define LX ld
#define SX sd
#else
#define REGISTER_BYTES 4
#define REGISTER_SHIFT 2
#define LANES 1
#define LX lw
#define SX sw
#endif

/* Per 32-bit lane: rd += the four products of signed bytes. */
.macro smaqa rd, rs1, rs2
    .insn r 0x77, 0, 0x64, \rd, \rs1, \rs2
.endm

/* The same with signed bytes of rs1 and unsigned bytes of rs2. */
.macro smaqa.su rd, rs1, rs2
    .insn r 0x77, 0, 0x65, \rd, \rs1, \rs2
.endm

/* Per 32-bit lane: (rs1 * rs2 + 2^30) >> 31, saturated: SaturatingRoundingDoublingHighMul for a positive rs2. */
.macro kwmmul.u rd, rs1, rs2
    .insn r 0x77, 1, 0x39, \rd, \rs1, \rs2
.endm

/* Per 32-bit lane: (rs1 * rs2) >> 32. */
.macro smmul rd, rs1, rs2
#if __riscv_xlen == 64
    .insn r 0x77, 1, 0x20, \rd, \rs1, \rs2
#else
    mulh \rd, \rs1, \rs2
#endif
.endm

/* Per 32-bit lane: (rs1 * rs2 + 2^31) >> 32. */
.macro smmul.u rd, rs1, rs2
    .insn r 0x77, 1, 0x28, \rd, \rs1, \rs2
.endm

.macro add32 rd, rs1, rs2
#if __riscv_xlen == 64
    .insn r 0x77, 2, 0x20, \rd, \rs1, \rs2
#else
    add \rd, \rs1, \rs2
#endif
.endm

.macro add16 rd, rs1, rs2
    .insn r 0x77, 0, 0x20, \rd, \rs1, \rs2
.endm

/* The sign of each 32-bit lane, as 0 or -1. */
.macro sign32 rd, rs1
#if __riscv_xlen == 64
    .insn r 0x77, 2, 0x38, \rd, \rs1, x31
#else
    srai \rd, \rs1, 31
#endif
.endm

/* Per 32-bit lane: saturate to [-2^14, 2^14). */
.macro sclip32_14 rd, rs1
    .insn r 0x77, 0, 0x72, \rd, \rs1, x14
.endm

/* Per 16-bit lane: saturate to int8. */
.macro sclip16_7 rd, rs1
    .insn r 0x77, 0, 0x42, \rd, \rs1, x7
.endm

/* Per 16-bit lane: shift left by 8, saturating: clips to int8 and leaves the byte in the upper half. (The
 * lower half is 0, or 0xff after saturation to the top.) */
.macro kslli16_8 rd, rs1
    .insn r 0x77, 0, 0x3a, \rd, \rs1, x24
.endm

.macro smax8 rd, rs1, rs2
    .insn r 0x77, 0, 0x45, \rd, \rs1, \rs2
.endm

.macro smin8 rd, rs1, rs2
    .insn r 0x77, 0, 0x44, \rd, \rs1, \rs2
.endm

/* Per 32-bit lane: the low halves of `low` and `high`, side by side. */
.macro pack_low16 rd, low, high
#if __riscv_xlen == 64
    .insn r 0x77, 1, 0x07, \rd, \high, \low
#else
    .insn r 0x33, 4, 0x04, \rd, \low, \high
#endif
.endm

/* Per 32-bit lane: the upper halves of `low` and `high`, side by side. */
.macro pack_high16 rd, low, high
#if __riscv_xlen == 64
    .insn r 0x77, 1, 0x17, \rd, \high, \low
#else
    .insn r 0x33, 4, 0x24, \rd, \low, \high
#endif
.endm

/* Per 32-bit lane: the upper half of `low` below the lower half of `high`: four bytes that straddle two words. */
.macro straddle16 rd, low, high
    .insn r 0x77, 1, 0x0f, \rd, \high, \low
.endm

/* mask ? a : b, bit by bit: cmix of Zbpbo, which the draft takes in. */
.macro select_bits rd, mask, a, b
    .insn r4 0x33, 1, 3, \rd, \a, \mask, \b
.endm

/* The low halves of the register, side by side: on RV64 both words become the low word. */
.macro pack rd, low, high
    .insn r 0x33, 4, 0x04, \rd, \low, \high
.endm

/* The high halves of the registers, side by side. */
.macro packu rd, low, high
    .insn r 0x33, 4, 0x24, \rd, \low, \high
.endm

/* The low word into every word. */
.macro pack_all rd
#if __riscv_xlen == 64
    pack \rd, \rd, \rd
#endif
.endm

/* Per 32-bit lane: shift left by 8. */
.macro slli32_8 rd, rs1
#if __riscv_xlen == 64
    .insn r 0x77, 2, 0x3a, \rd, \rs1, x8
#else
    slli \rd, \rs1, 8
#endif
.endm

#endif
