/* RISC-V P for assembly. rvp_operations_asm.h is generated from the declaration of the core's draft: one macro per
 * operation, with the names of draft 0.9.11. On RV32 that draft has pkbb16 and pkbb32 under one name: pack.
 */
#pragma once

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

#include "rvp_operations_asm.h"

/* Per 32-bit lane: the low halves of `low` and `high`, side by side. */
.macro pack_low16 rd, low, high
    pkbb16 \rd, \high, \low
.endm

/* Per 32-bit lane: the upper halves of `low` and `high`, side by side. */
.macro pack_high16 rd, low, high
    pktt16 \rd, \high, \low
.endm

/* Per 32-bit lane: the upper half of `low` below the lower half of `high`: four bytes that straddle two words. */
.macro straddle16 rd, low, high
    pkbt16 \rd, \high, \low
.endm

/* The low word into every word. */
.macro pack_all rd
#if __riscv_xlen == 64
    pack \rd, \rd, \rd
#endif
.endm
