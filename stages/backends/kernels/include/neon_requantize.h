/* Assembler macros for A64: int32 sums to 8 bits, exact to the bit with the reference (stages/ir/layers/rounding.py).
 *
 * Ways to scale a sum x by m * 2^(shift - 31):
 *   halves   two roundings, shift < 0 in all channels: sqrdmulh is the reference's high multiplication. srshl rounds halves up;
 *            subtracting one from negative values first (ssra by 31) makes it round halves away from zero
 *   shifts   two roundings, any shift: as above, but nothing is subtracted in channels without a right shift
 *   once     one rounding of the 64-bit product; the shift operand is shift - 31
 *   positive as halves, but nothing is subtracted: right for sums above 0, and the others become 0 or less
 *
 * The including file defines these vector registers: SCRATCH0 ... SCRATCH3, free while sums are scaled; and the layer's constants
 * for narrowing: ZERO_POINT (int16), LOW and HIGH (int8), FLIP (xored into each byte).
 */
#pragma once

#define MODE_HALVES 0
#define MODE_SHIFTS 1
#define MODE_ONCE 2
#define MODE_POSITIVE 3

.macro scale_halves acc, multiplier, shift
    sqrdmulh \acc\().4s, \acc\().4s, \multiplier\().4s
    ssra \acc\().4s, \acc\().4s, #31
    srshl \acc\().4s, \acc\().4s, \shift\().4s
.endm

.macro scale_positive acc, multiplier, shift
    sqrdmulh \acc\().4s, \acc\().4s, \multiplier\().4s
    srshl \acc\().4s, \acc\().4s, \shift\().4s
.endm

/* SCRATCH0: left shift, SCRATCH1: right shift (negative), SCRATCH2: all ones where there is a right shift */
.macro scale_shifts acc, multiplier
    sshl \acc\().4s, \acc\().4s, SCRATCH0.4s
    sqrdmulh \acc\().4s, \acc\().4s, \multiplier\().4s
    and SCRATCH3.16b, \acc\().16b, SCRATCH2.16b
    ssra \acc\().4s, SCRATCH3.4s, #31
    srshl \acc\().4s, \acc\().4s, SCRATCH1.4s
.endm

/* SCRATCH0, SCRATCH1: the shift in 64 bits, of channels 0, 1 and 2, 3 */
.macro scale_once acc, multiplier
    smull SCRATCH2.2d, \acc\().2s, \multiplier\().2s
    smull2 SCRATCH3.2d, \acc\().4s, \multiplier\().4s
    srshl SCRATCH2.2d, SCRATCH2.2d, SCRATCH0.2d
    srshl SCRATCH3.2d, SCRATCH3.2d, SCRATCH1.2d
    xtn \acc\().2s, SCRATCH2.2d
    xtn2 \acc\().4s, SCRATCH3.2d
.endm

/* Scales registers of the same four channels in the mode `mode`. */
.macro scale_channels mode, multiplier, shift, sums:vararg
    .if \mode == MODE_HALVES
    .irp acc, \sums
    scale_halves \acc, \multiplier, \shift
    .endr
    .elseif \mode == MODE_POSITIVE
    .irp acc, \sums
    scale_positive \acc, \multiplier, \shift
    .endr
    .elseif \mode == MODE_SHIFTS
    movi SCRATCH3.4s, #0
    smax SCRATCH0.4s, \shift\().4s, SCRATCH3.4s
    smin SCRATCH1.4s, \shift\().4s, SCRATCH3.4s
    sshr SCRATCH2.4s, \shift\().4s, #31
    .irp acc, \sums
    scale_shifts \acc, \multiplier
    .endr
    .else
    sxtl SCRATCH0.2d, \shift\().2s
    sxtl2 SCRATCH1.2d, \shift\().4s
    .irp acc, \sums
    scale_once \acc, \multiplier
    .endr
    .endif
.endm

/* 8 or 16 (`bytes`: 8b or 16b) results as they are stored. */
.macro clip_bytes a, bytes
    smax \a\().\bytes, \a\().\bytes, LOW.\bytes
    smin \a\().\bytes, \a\().\bytes, HIGH.\bytes
    eor \a\().\bytes, \a\().\bytes, FLIP.\bytes
.endm

/* Four registers to 16 bytes in the first. Intermediate saturation has no other effect than the final clamp. */
.macro narrow_16 a, b, c, d
    sqxtn \a\().4h, \a\().4s
    sqxtn2 \a\().8h, \b\().4s
    sqxtn \c\().4h, \c\().4s
    sqxtn2 \c\().8h, \d\().4s
    sqadd \a\().8h, \a\().8h, ZERO_POINT.8h
    sqadd \c\().8h, \c\().8h, ZERO_POINT.8h
    sqxtn \a\().8b, \a\().8h
    sqxtn2 \a\().16b, \c\().8h
    clip_bytes \a, 16b
.endm

/* Three registers to 12 bytes in the first. */
.macro narrow_12 a, b, c
    sqxtn \a\().4h, \a\().4s
    sqxtn2 \a\().8h, \b\().4s
    sqxtn \c\().4h, \c\().4s
    sqadd \a\().8h, \a\().8h, ZERO_POINT.8h
    sqadd \c\().4h, \c\().4h, ZERO_POINT.4h
    sqxtn \a\().8b, \a\().8h
    sqxtn2 \a\().16b, \c\().8h
    clip_bytes \a, 16b
.endm

/* One register to four bytes. */
.macro narrow_4 a
    sqxtn \a\().4h, \a\().4s
    sqadd \a\().4h, \a\().4h, ZERO_POINT.4h
    sqxtn \a\().8b, \a\().8h
    clip_bytes \a, 8b
.endm

/* The first `count` (1 to 3, a w register) bytes of a register to `address`, which moves; `temporary` is a w register. */
.macro store_bytes a, address, count, temporary
    umov \temporary, \a\().s[0]
    tbz \count, #1, 91f
    strh \temporary, [\address], #2
    lsr \temporary, \temporary, #16
91: tbz \count, #0, 92f
    strb \temporary, [\address], #1
92:
.endm

/* d8 ... d15 are the caller's. */
.macro save_vectors
    stp d8, d9, [sp, #-64]!
    stp d10, d11, [sp, #16]
    stp d12, d13, [sp, #32]
    stp d14, d15, [sp, #48]
.endm

.macro restore_vectors
    ldp d10, d11, [sp, #16]
    ldp d12, d13, [sp, #32]
    ldp d14, d15, [sp, #48]
    ldp d8, d9, [sp], #64
.endm
