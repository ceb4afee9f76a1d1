/* Pointwise convolution, requantized to int8, of pixels of one or two chunks (four or eight channels), or of panel rows of one to
 * three chunks. The constants of a block of channels stay in registers while all pixels are computed. RV64 and RV32, P draft 0.9.11.
 *
 *   void rvp_pointwise_s8_c<C>(const int8_t *x, const int32_t *params, int8_t *out, int pixels, int stride, int blocks,
 *                              int clip);
 *   void rvp_pointwise_s8_p<C>(...)   for panels of one row (panel.h); p1: also for pairs of pixels
 *   void rvp_pointwise_s8_two2(...)   for pairs of pixels of two chunks. RV64: a lane has a pixel's four channels
 *
 * A register has LANES lanes of 32 bits: 2 on RV64, 1 on RV32. A block is 4 * LANES output channels, in the registers' order of
 * gemm_s8.S.
 *
 *   x        [pixels][C] chunks of four channels; for p<C> registers
 *   params   [blocks][3 + C][4] registers: bias (zero points folded in), weights of each chunk, multiplier, rounder (packing.py),
 *            or zero points as in gemm_s8.S
 *   out      pixels are `stride` bytes apart
 *   clip     the clip word of requantize_asm.h
 *
 *             s0   s1   s2   s3     <- weights of the first chunk
 *             s4   s5   s6   s7     <- of the second
 *   x, y    | c0   c1   c2   c3     a pixel's chunks, each in every lane
 *
 * 8 weights, 4 multipliers, 4 rounders, 4 sums, x, y, six more: 28 registers. Each pixel loads the biases from the frame, which
 * takes no more instructions than a copy from registers. With three chunks, the weights take the registers of the rounders too, and
 * the rounders are loaded from the frame.
 */
.set single, 0                        /* two roundings */

#define in a0
#define out a1
#define end a2                        /* of the input */
#define stride a3
#define zero_point a4                 /* in every 16-bit lane */
#define upper a5                      /* 0xff00 in every 16-bit lane */
#define x a6
#define y a7
#define SUMS t0, t1, t2, t3
#define FIRST_CHUNK s0, s1, s2, s3
#define SECOND_CHUNK s4, s5, s6, s7
#define MULTIPLIERS t4, t5, t6, ra
#define ROUNDERS s8, s9, s10, s11
#define THIRD_CHUNK ROUNDERS

#define IN FRAME(13)
#define OUT FRAME(14)
#define PARAMS FRAME(15)
#define BLOCKS FRAME(16)              /* left to do */
#define CLAMPS FRAME(17)              /* whether the next two slots are needed */
#define LOWEST FRAME(18)              /* in every byte */
#define HIGHEST FRAME(19)
#define FLIP FRAME(20)
#define BIAS FRAME(21)
#define LATE_ROUNDERS FRAME(25)       /* of three chunks */
#define FRAME_BYTES ((FRAME(29) + 15) & ~15)

#include "frame_asm.h"
#include "products_asm.h"
#include "requantize_asm.h"

.macro load_registers base, first, r0, r1, r2, r3
    LX \r0, ((\first) + 0) * REGISTER_BYTES(\base)
    LX \r1, ((\first) + 1) * REGISTER_BYTES(\base)
    LX \r2, ((\first) + 2) * REGISTER_BYTES(\base)
    LX \r3, ((\first) + 3) * REGISTER_BYTES(\base)
.endm

/* Stores registers in the frame, from slot `to` on. */
.macro keep_registers to, r0, r1, r2, r3
    SX \r0, \to + 0 * REGISTER_BYTES(sp)
    SX \r1, \to + 1 * REGISTER_BYTES(sp)
    SX \r2, \to + 2 * REGISTER_BYTES(sp)
    SX \r3, \to + 3 * REGISTER_BYTES(sp)
.endm

.macro add_products chunk, c0, c1, c2, c3, v0, v1, v2, v3
    smaqa \c0, \chunk, \v0
    smaqa \c1, \chunk, \v1
    smaqa \c2, \chunk, \v2
    smaqa \c3, \chunk, \v3
.endm

.macro high_multiply c0, c1, c2, c3, m0, m1, m2, m3
    high_multiply_1 \c0, \m0
    high_multiply_1 \c1, \m1
    high_multiply_1 \c2, \m2
    high_multiply_1 \c3, \m3
.endm

.macro round c0, c1, c2, c3, r0, r1, r2, r3
    smmul.u \c0, \c0, \r0
    smmul.u \c1, \c1, \r1
    smmul.u \c2, \c2, \r2
    smmul.u \c3, \c3, \r3
.endm

.macro round_wide c0, c1, c2, c3, r0, r1, r2, r3
    round_wide_1 \c0, \r0, x
    round_wide_1 \c1, \r1, x
    round_wide_1 \c2, \r2, x
    round_wide_1 \c3, \r3, x
.endm

/* The same with rounders from the frame, one after the other. */
.macro round_late c0, c1, c2, c3
    .set slot, 0
    .irp c, \c0, \c1, \c2, \c3
    LX y, LATE_ROUNDERS + slot * REGISTER_BYTES(sp)
    smmul.u \c, \c, y
    .set slot, slot + 1
    .endr
.endm

.macro round_wide_late c0, c1, c2, c3
    .set slot, 0
    .irp c, \c0, \c1, \c2, \c3
    LX y, LATE_ROUNDERS + slot * REGISTER_BYTES(sp)
    round_wide_1 \c, y, x
    .set slot, slot + 1
    .endr
.endm

.macro narrow c0, c1, c2, c3
    narrow_4 \c0, \c1, \c2, \c3, zero_point, zero_point, upper
.endm

.macro narrow_rounded_once c0, c1, c2, c3
    narrow_4 \c0, \c1, \c2, \c3, s9, s10, upper
.endm

.macro narrow_rounded_once_late c0, c1, c2, c3
    LX x, LATE_ROUNDERS + 1 * REGISTER_BYTES(sp)
    LX y, LATE_ROUNDERS + 2 * REGISTER_BYTES(sp)
    narrow_4 \c0, \c1, \c2, \c3, x, y, upper
.endm

.macro clamp c0, others:vararg
    smax8 \c0, \c0, x
    smin8 \c0, \c0, y
.endm

.macro write c0, others:vararg
    SX \c0, 0(out)
.endm

/* The chunks of a pixel into x and y, in every lane; the third is read when x is free. */
.macro load_pixel
    .if of_two
    LX t0, 0(in)
    LX y, REGISTER_BYTES(in)
    pack x, t0, y
    packu y, t0, y
    .elseif in_lanes
    LX x, 0(in)
    .if chunks > 1
    LX y, REGISTER_BYTES(in)
    .endif
    .elseif chunks == 1
    lw x, 0(in)
    pack_all x
    .elseif LANES == 1
    lw x, 0(in)
    lw y, 4(in)
    .else
    LX y, 0(in)
    pack x, y, y
    packu y, y, y
    .endif
.endm

/* All pixels, one after the other. `how`: ONCE, SHORT or WIDE roundings. */
#define ONCE 0
#define SHORT 1
#define WIDE 2
.macro pass how, is_clamped
7:  load_pixel
    load_registers sp, BIAS / REGISTER_BYTES, SUMS
    add_products x, SUMS, FIRST_CHUNK
    .if chunks == 3
    LX x, 2 * REGISTER_BYTES(in)
    .endif
    addi in, in, pixel_bytes
    .if chunks > 1
    add_products y, SUMS, SECOND_CHUNK
    .endif
    .if chunks == 3
    add_products x, SUMS, THIRD_CHUNK
    .endif
    .if \how == ONCE
    round SUMS, MULTIPLIERS
    .if chunks == 3
    narrow_rounded_once_late SUMS
    .else
    narrow_rounded_once SUMS
    .endif
    .else
    high_multiply SUMS, MULTIPLIERS
    .if chunks == 3 && \how == WIDE
    round_wide_late SUMS
    .elseif chunks == 3
    round_late SUMS
    .elseif \how == WIDE
    round_wide SUMS, ROUNDERS
    .else
    round SUMS, ROUNDERS
    .endif
    narrow SUMS
    .endif
    .if \is_clamped
    LX x, LOWEST(sp)
    LX y, HIGHEST(sp)
    clamp SUMS
    .endif
    write SUMS
    add out, out, stride
    bne in, end, 7b
.endm

/* All pixels of a block. The block's first rounder, in `mark`, selects the rounding. */
.macro every_pixel mark
    LX y, CLAMPS(sp)
    beqz \mark, 8f
    bltz \mark, 3f                        /* its sign marks a wide block */
    bnez y, 2f
    pass SHORT, 0
    j 6f
2:  pass SHORT, 1
    j 6f
3:  without_mark \mark
    .if chunks == 3
    SX \mark, LATE_ROUNDERS(sp)
    .endif
    bnez y, 4f
    pass WIDE, 0
    j 6f
4:  pass WIDE, 1
    j 6f
8:  bnez y, 9f
    pass ONCE, 0
    j 6f
9:  pass ONCE, 1
6:
.endm

/* `lanes`: whether chunks lie in every lane; `two`: whether a lane has a pixel of two. */
.macro pointwise name, chunks_of_a_pixel, lanes, two=0
    .set chunks, \chunks_of_a_pixel
    .set in_lanes, \lanes
    .set of_two, \two
    .set pixel_bytes, chunks * (4 + (REGISTER_BYTES - 4) * in_lanes)
    function \name
    addi sp, sp, -FRAME_BYTES
    save EVERY_SAVED
    SX in, IN(sp)
    SX out, PARAMS(sp)
    SX a2, OUT(sp)
    SX a5, BLOCKS(sp)
    .if chunks == 3
    li t0, pixel_bytes
    mul t0, t0, a3
    .else
    slli t0, a3, 1 + chunks + (REGISTER_SHIFT - 2) * in_lanes
    .endif
    add end, in, t0
    mv stride, a4
    mv s0, a6                          /* the clip word */
    zero_point_of zero_point, s0
    upper_bytes upper
    srli t1, s0, 8
    li t2, CLIPS_AS_INT8
    xor t2, t1, t2
    slli t2, t2, REGISTER_BYTES * 8 - 24
    SX t2, CLAMPS(sp)
    beqz t2, 1f
    keep_bounds s0

1:  LX x, PARAMS(sp)                   /* a block of channels */
    load_registers x, 0, SUMS
    keep_registers BIAS, SUMS
    load_registers x, 4, FIRST_CHUNK
    .if chunks > 1
    load_registers x, 8, SECOND_CHUNK
    .endif
    load_registers x, 4 * chunks + 4, MULTIPLIERS
    load_registers x, 4 * chunks + 8, ROUNDERS
    .if chunks == 3
    keep_registers LATE_ROUNDERS, ROUNDERS
    mv t0, s8
    load_registers x, 12, THIRD_CHUNK
    .endif
    addi x, x, (3 + chunks) * 4 * REGISTER_BYTES
    SX x, PARAMS(sp)
    LX in, IN(sp)
    LX out, OUT(sp)
    addi x, out, REGISTER_BYTES
    SX x, OUT(sp)
    .if chunks == 3
    every_pixel t0
    .else
    every_pixel s8
    .endif
    LX t0, BLOCKS(sp)
    addi t0, t0, -1
    SX t0, BLOCKS(sp)
    bnez t0, 1b
    leave EVERY_SAVED
    end_function \name
.endm

pointwise rvp_pointwise_s8_c1, 1, 0
pointwise rvp_pointwise_s8_c2, 2, 0
pointwise rvp_pointwise_s8_p1, 1, 1
pointwise rvp_pointwise_s8_p2, 2, 1
pointwise rvp_pointwise_s8_p3, 3, 1
#if LANES == 2
pointwise rvp_pointwise_s8_two2, 2, 1, 1
#endif
