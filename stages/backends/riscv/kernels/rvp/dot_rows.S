/* One row times any number of units, with the lanes along the depth, requantized to 8 bits: fully connected layers with a
 * batch of one. RV64 and RV32, P 0.9.11.
 *
 *   void rvp_dot_rows_{s8,u8}[s](const void *x, const int8_t *weights, const int32_t *params, void *out,
 *                                int steps, int units, int clip, int weight_zero_point);
 *
 * A step is one register of x: 4 * LANES consecutive k.
 *
 *   x        `steps` registers, read in place. Bytes of the last one after the end of the row have no effect
 *   weights  groups of 8 units, then one group of 4 and one of 1 to 3 for the remaining units. A group is [steps][units of the
 *            group] registers: 4 * LANES weights of one unit, padded with the zero point
 *   params   [quads][3][4] int32: bias (zero points folded in), multiplier, rounder (packing.py) of four units
 *   out      one byte for each unit, four at once
 *   clip     the clip word of requantize_asm.h
 *
 * s8 or u8 is the type of x. The s variants round once instead of twice.
 *
 * Register blocking, one step: 1 + n loads for n smaqa, each 4 * LANES MACs.
 *
 *         w0   w1   w2   w3   w0   w1   w2   w3     <- one register of each unit: 8 loads; 4, 3, 2 or 1 in the last groups
 *     x | A0   A1   A2   A3   B0   B1   B2   B3     1 load, 8 smaqa
 *
 * An accumulator starts with the bias in its lower lane; its lanes are added at the end:
 *
 *     A0 = | sum of k % 8 in 4 ... 7 | sum of k % 8 in 0 ... 3 + bias |      A0 + A1 -> | A1 | A0 |   (RV64)
 *
 * The loop over steps is unrolled by UNROLL and entered in the middle, so that any number of steps costs the same.
 */
#define UNROLL 8
#define QUAD_BYTES 48                 /* of params */
#define QUAD_REGISTERS (QUAD_BYTES / REGISTER_BYTES)

#define at a0                         /* walks over x */
#define weights a1
#define params a2
#define out a3
#define skipped a4                    /* steps that the entry skips */
#define units a5
#define zero a6
#define offset a7                     /* the term of the weights' zero point, in every lane */
#define x ra

#define A t0, t1, t2, t3
#define B t4, t5, t6, s0
#define w0 s1
#define w1 s2
#define w2 s3
#define w3 s4
#define start s5                      /* x, minus the steps that the entry skips */
#define end s6
#define odd_bytes s7
#define clamps s8

#define LOWEST FRAME(10)
#define HIGHEST FRAME(11)
#define FLIP FRAME(12)
#define FRAME_BYTES ((FRAME(13) + 15) & ~15)

#include "frame_asm.h"
#include "products_asm.h"
#include "requantize_asm.h"

.macro load_bias rd, number
#if __riscv_xlen == 64
    lwu \rd, (\number) / 4 * QUAD_BYTES + (\number) % 4 * 4(params)
#else
    lw \rd, (\number) / 4 * QUAD_BYTES + (\number) % 4 * 4(params)
#endif
.endm

.macro biases first, count, c0, c1, c2, c3
    load_bias \c0, \first
    .if \count > 1
    load_bias \c1, \first + 1
    .endif
    .if \count > 2
    load_bias \c2, \first + 2
    .endif
    .if \count > 3
    load_bias \c3, \first + 3
    .endif
.endm

/* `count` units from number `first` of the group, at this step. */
.macro products first, count, c0, c1, c2, c3
    LX w0, (step * group_units + \first) * REGISTER_BYTES(weights)
    .if \count > 1
    LX w1, (step * group_units + \first + 1) * REGISTER_BYTES(weights)
    .endif
    .if \count > 2
    LX w2, (step * group_units + \first + 2) * REGISTER_BYTES(weights)
    .endif
    .if \count > 3
    LX w3, (step * group_units + \first + 3) * REGISTER_BYTES(weights)
    .endif
    multiply_either \c0, x, w0
    .if \count > 1
    multiply_either \c1, x, w1
    .endif
    .if \count > 2
    multiply_either \c2, x, w2
    .endif
    .if \count > 3
    multiply_either \c3, x, w3
    .endif
.endm

/* `step4` for up to four units in A, and for four more in B if there are eight. */
.macro for_units step4
    .if group_units == 8
    \step4 0, 4, A
    \step4 4, 4, B
    .else
    \step4 0, group_units, A
    .endif
.endm

/* The sums of a group of units, from their biases on. */
.macro group count
    .set group_units, \count
    for_units biases
    li w0, (1 + 2 * group_units) * 4   /* bytes of code of one step */
    li w1, group_units * REGISTER_BYTES /* and of weights */
    mul w0, w0, skipped
    mul w1, w1, skipped
    lla x, 7f
    add w0, w0, x
    sub weights, weights, w1
    mv at, start
    jr w0

    .option push
    .option norvc
    .balign 4
7:
    .set step, 0
    .rept UNROLL
    LX x, step * REGISTER_BYTES(at)
    for_units products
    .set step, step + 1
    .endr
    .option pop
    addi at, at, UNROLL * REGISTER_BYTES
    addi weights, weights, UNROLL * group_units * REGISTER_BYTES
    bne at, end, 7b
.endm

#if __riscv_xlen == 64
/* The sums of two units, in the lanes of `a`. */
.macro add_lanes a, b
    pack x, \a, \b
    packu \a, \a, \b
    add32 \a, \a, x
.endm

/* Requantizes the four units of quad number `quad`; their bytes end up in the low word of c0. */
.macro requantize quad, c0, c1, c2, c3
    add_lanes \c0, \c1
    add_lanes \c2, \c3
    beqz offset, 6f
    add32 \c0, \c0, offset
    add32 \c2, \c2, offset
6:  load_4 params, \quad * QUAD_REGISTERS + 2
    high_multiply_1 \c0, w0
    high_multiply_1 \c2, w1
    bltz w2, 8f
    smmul.u \c0, \c0, w2
    smmul.u \c2, \c2, w3
    j 9f
8:  without_mark w2
    round_wide_1 \c0, w2, x
    round_wide_1 \c2, w3, x
9:  pack_low16 \c0, \c0, \c2           /* units 0, 2, 1, 3 */
    add16 \c0, \c0, zero
    kslli16_8 \c0, \c0
    srli x, \c0, 32
    srli \c0, \c0, 8
    select_bits \c0, odd_bytes, x, \c0
.endm
#else
.macro requantize quad, c0, c1, c2, c3
    beqz offset, 6f
    add \c0, \c0, offset
    add \c1, \c1, offset
    add \c2, \c2, offset
    add \c3, \c3, offset
6:  scale_4 params, \quad * QUAD_REGISTERS + 4, \c0, \c1, \c2, \c3
    narrow_4 \c0, \c2, \c1, \c3, zero, zero, odd_bytes
.endm
#endif

.macro dot_rows name, unsigned_x, rounds_once
    .set unsigned, \unsigned_x
    .set single, \rounds_once
    function \name
    addi sp, sp, -FRAME_BYTES
    save s0, s1, s2, s3, s4, s5, s6, s7, s8
    slli end, a4, REGISTER_SHIFT
    add end, end, a0
    left_out skipped, a4
    slli start, skipped, REGISTER_SHIFT
    sub start, a0, start
    li odd_bytes, 0xff00ff00

    srli t1, a6, 8                     /* the clip word, byte by byte */
    li clamps, CLIPS_AS_INT8
    xor clamps, clamps, t1
    slli clamps, clamps, REGISTER_BYTES * 8 - 24
    beqz clamps, 1f
    keep_bounds a6
1:  zero_point_of zero, a6

    beqz a7, 3f                        /* the weights' zero point times the sum of x */
    li t1, 1
    splat_byte t1, x
    li t0, 0
2:  LX x, 0(at)
    multiply_either t0, x, t1
    addi at, at, REGISTER_BYTES
    bne at, end, 2b
#if __riscv_xlen == 64
    srli t1, t0, 32
    add t0, t0, t1
#endif
    mul offset, offset, t0
    neg offset, offset
    pack_all offset

3:  li w0, 8                           /* groups of eight */
    blt units, w0, .Lleft_\name
    group 8
    requantize 0, A
    requantize 1, B
    beqz clamps, 5f
    load_bounds w0, w1, w2
    clamp_bytes t0, w0, w1, w2
    clamp_bytes t4, w0, w1, w2
5:  sw t0, 0(out)
    sw t4, 4(out)
    addi params, params, 2 * QUAD_BYTES
    addi out, out, 8
    addi units, units, -8
    j 3b

.Lleft_\name:                          /* four and less */
    beqz units, .Ldone_\name
    addi w0, units, -2
    bltz w0, 1f
    beqz w0, 2f
    addi w0, w0, -1
    beqz w0, 3f
    group 4
    j 4f
3:  group 3
    j 4f
2:  group 2
    j 4f
1:  group 1
4:  requantize 0, A
    beqz clamps, 5f
    load_bounds w0, w1, w2
    clamp_bytes t0, w0, w1, w2
5:  addi w0, units, -4
    bltz w0, 6f
    sw t0, 0(out)
    addi params, params, QUAD_BYTES
    addi out, out, 4
    mv units, w0
    j .Lleft_\name
6:  sb t0, 0(out)
    srli t0, t0, 8
    addi out, out, 1
    addi units, units, -1
    bnez units, 6b

.Ldone_\name:
    leave s0, s1, s2, s3, s4, s5, s6, s7, s8
    end_function \name
.endm

dot_rows rvp_dot_rows_s8, 0, 0
dot_rows rvp_dot_rows_s8s, 0, 1
dot_rows rvp_dot_rows_u8, 1, 0
dot_rows rvp_dot_rows_u8s, 1, 1
