/* Converts sums in 32-bit lanes to bytes, for assembly. RISC-V P, draft 0.9.11. A sum is rounded by two multiplications, or by one
 * (one_rounding.py). One multiplication is round_4 alone, with separate zero points.
 *
 * The including file sets `single`: 1 to round once instead of twice. It also defines the registers x and w0-w3. Macros for four
 * registers take multipliers and rounders from w0-w3 and overwrite x. Macros for a clip word store its bytes in the frame's slots
 * LOWEST, HIGHEST and FLIP.
 *
 *   rounder    in a wide block the first one is negative. This mark is shifted out; halves in such a block need round_wide_1
 *   clip word  output zero point, lowest, highest value (int8 each) and the byte that is xored into each result; low byte first
 */
#pragma once

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

.macro high_multiply_4 c0, c1, c2, c3, others:vararg
    high_multiply_1 \c0, w0
    high_multiply_1 \c1, w1
    high_multiply_1 \c2, w2
    high_multiply_1 \c3, w3
.endm

.macro round_4 c0, c1, c2, c3, others:vararg
    smmul.u \c0, \c0, w0
    smmul.u \c1, \c1, w1
    smmul.u \c2, \c2, w2
    smmul.u \c3, \c3, w3
.endm

.macro round_wide_4 c0, c1, c2, c3, others:vararg
    round_wide_1 \c0, w0, x
    round_wide_1 \c1, w1, x
    round_wide_1 \c2, w2, x
    round_wide_1 \c3, w3, x
.endm

/* A rounder without the mark of a wide block. */
.macro without_mark rounder
    slli \rounder, \rounder, 1
    srli \rounder, \rounder, 1
.endm

/* Scales four registers of sums by the four multipliers and four rounders from register `first` of `base` on. */
.macro scale_4 base, first, c0, c1, c2, c3
    load_4 \base, \first
    high_multiply_4 \c0, \c1, \c2, \c3
    load_4 \base, \first + 4
    bltz w0, 8f
    round_4 \c0, \c1, \c2, \c3
    j 9f
8:  without_mark w0
    round_wide_4 \c0, \c1, \c2, \c3
9:
.endm

/* Four registers of 32-bit lanes to 16 bits, plus zero points, clipped to 8 bits, interleaved, into c0. The zero points of c0 and
 * c1 are side by side in `first`, those of c2 and c3 in `second`; `upper` is 0xff00 in every 16-bit lane.
 */
.macro narrow_4 c0, c1, c2, c3, first, second, upper
    pack_low16 \c0, \c0, \c1
    pack_low16 \c2, \c2, \c3
    add16 \c0, \c0, \first
    add16 \c2, \c2, \second
    sclip16_7 \c0, \c0
    kslli16_8 \c2, \c2
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

/* The low half of rd into every half. */
.macro splat_half rd
    pack_low16 \rd, \rd, \rd
    pack_all \rd
.endm

/* 0xff00 in every 16-bit lane, for narrow_4. */
.macro upper_bytes rd
    li \rd, 0xff00
    splat_half \rd
.endm

/* The zero point of a clip word in every 16-bit lane. */
.macro zero_point_of rd, clip
    slli \rd, \clip, REGISTER_BYTES * 8 - 8
    srai \rd, \rd, REGISTER_BYTES * 8 - 8
    splat_half \rd
.endm

/* Lowest and highest value of a clip word that clips to int8, as narrow_4's saturation does; nothing is xored. */
#define CLIPS_AS_INT8 0x007f80

/* The bytes of a clip word, shifted right by 8 in t1, into the frame. Overwrites t2, t3 and x. */
.macro keep_bounds clip
    srli t2, \clip, 16
    srli t3, \clip, 24
    splat_byte t1, x
    splat_byte t2, x
    splat_byte t3, x
    SX t1, LOWEST(sp)
    SX t2, HIGHEST(sp)
    SX t3, FLIP(sp)
.endm

.macro load_bounds low, high, flip
    LX \low, LOWEST(sp)
    LX \high, HIGHEST(sp)
    LX \flip, FLIP(sp)
.endm
