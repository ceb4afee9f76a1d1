/* From sums in 32-bit lanes to bytes, for assembly. RISC-V P, draft 0.9.11.
 *
 * Who uses this sets `single`: 1 to round once instead of twice.
 */
#ifndef FIRMLINE_RVP_REQUANTIZE_ASM_H
#define FIRMLINE_RVP_REQUANTIZE_ASM_H

#include "rvp_asm.h"

/* The first of two roundings, or all of the product that is rounded once. */
.macro high_multiply_1 c, multiplier
    .if single
    smmul \c, \c, \multiplier
    .else
    kwmmul.u \c, \c, \multiplier
    .endif
.endm

/* Halves away from zero: a negative value is lowered by one, then rounded towards plus infinity. (Rounded once: simply
 * that.)
 */
.macro round_wide_1 c, rounder, scratch
    .if !single
    sign32 \scratch, \c
    add32 \c, \c, \scratch
    .endif
    kwmmul.u \c, \c, \rounder
    sclip32_14 \c, \c
.endm

/* Four registers of 32-bit lanes to 16 bits, plus the zero point, clipped to 8 bits, interleaved, into c0. `upper` is
 * 0xff00 in every 16-bit lane.
 */
.macro narrow_4 c0, c1, c2, c3, zero_point, upper
    pack_low16 \c0, \c0, \c1
    pack_low16 \c2, \c2, \c3
    add16 \c0, \c0, \zero_point
    add16 \c2, \c2, \zero_point
    kslli16_8 \c0, \c0
    kslli16_8 \c2, \c2
    srli \c0, \c0, 8
    select_bits \c0, \upper, \c2, \c0
.endm

.macro clamp_bytes c, low, high, flip
    smax8 \c, \c, \low
    smin8 \c, \c, \high
    xor \c, \c, \flip
.endm

/* The low byte of rd into every byte. */
.macro splat_byte rd, scratch
    andi \rd, \rd, 255
    slli \scratch, \rd, 8
    or \rd, \rd, \scratch
    pack_low16 \rd, \rd, \rd
    pack_all \rd
.endm

#endif
