/* Depthwise 3x3 on one strip of four output columns, requantized to 8 bits. RV64 and RV32, P draft 0.9.11.
 *
 *   void rvp_depthwise3x3_s<stride>[u[s]][_wide|_once](const int8_t *strip, int8_t *out, int rows, const int32_t *params,
 *                                               int zero_point);
 *
 * A group is 4 * LANES channels: register j = 0...3 holds channel j of the group in its lower lane and channel j + 4 in the upper
 * one (RV64). The image is transposed: a lane has four columns of one channel, which contain one row of a window:
 *
 *   strip    stride 1: [input row][j][2] registers: columns 0-3 and 4-7 of the strip
 *            stride 2: [input row][j][3] registers: columns 0-3, 4-7 and 8-11
 *   out      [output row][j] registers: four output columns
 *   params   [j][6] registers: three rows of weights [w0 w1 w2 0], bias (zero points folded in), multiplier, rounder
 *
 *   stride 1         c0 c1 c2 c3 | c4 c5 ..      output  0   1   2   3
 *     first load     [  v       ]                        v   v   x   x
 *     straddle             [  x      ]           weights w   w'  w   w'    w' = w << 8 = [0 w0 w1 w2]
 *
 *   stride 2         c0 c1 c2 c3 | c4 c5 c6 c7 | c8 ..   outputs v, straddle(v, n), n, straddle(n, nn), all with w
 *
 * Each input row is loaded once and used for three output rows (stride 2: one or two). There are three sets of four accumulators:
 * the input row is the last row of one window, the middle of the next and the first of the third. The sets rotate.
 *
 * The u variants read unsigned activations (smaqa.su). In the us variants weights are sums of two int8 (uint8 weights
 * minus their zero point need nine bits): params are [j][9] registers with the three rows of the second addends at the end, and
 * each row is multiplied twice. The wide variants round exactly for any shift (packing.py). The `once` variants round once; they have
 * a zero point for each channel instead of the rounder.
 */
.set single, 0                        /* two roundings */

#define in a0
#define out a1
#define end a2                        /* end of the output rows that full iterations compute */
#define rounder a3
#define v a4
#define x a5
#define zero a6                       /* the output's zero point in every 16-bit lane */
#define upper a7                      /* 0xff00 in every 16-bit lane */
#define weights0 s4
#define weights1 s5
#define weights2 s6
#define shifted0 s7
#define shifted1 s8
#define shifted2 s9
#define bias s10
#define multiplier s11

#define SET0 t0, t1, t2, t3
#define SET1 t4, t5, t6, ra
#define SET2 s0, s1, s2, s3

/* Stride 2 has two sets of accumulators; its four windows take the registers of the third set. */
#define n s0
#define nn s1
#define vn s2                         /* straddles v and n */
#define nnn s3                        /* straddles n and nn */

#define IN FRAME(13)
#define OUT FRAME(14)
#define PARAMS FRAME(15)
#define PARAMS_END FRAME(16)
#define BIAS FRAME(17)                 /* in the us variants, whose second addends take its register */
#define SECOND0 FRAME(18)
#define SECOND1 FRAME(19)
#define SECOND2 FRAME(20)
#define LEFT FRAME(21)                 /* output rows after the full iterations */
#define FRAME_BYTES ((FRAME(22) + 15) & ~15)

#include "frame_asm.h"
#include "products_asm.h"
#include "requantize_asm.h"

/* One row of the window for the four outputs, stride 1: the columns alternate between the two alignments of the
 * weights.
 */
.macro dot4_stride1 c0, c1, c2, c3, w, shifted, second
    multiply_either \c0, v, \w
    multiply_either \c1, v, \shifted
    multiply_either \c2, x, \w
    multiply_either \c3, x, \shifted
    .if split
    LX bias, \second(sp)
    multiply_either \c0, v, bias
    multiply_either \c2, x, bias
    slli32_8 bias, bias
    multiply_either \c1, v, bias
    multiply_either \c3, x, bias
    .endif
.endm

.macro dot4_stride2 c0, c1, c2, c3, w, shifted, second
    multiply_either \c0, v, \w
    multiply_either \c1, vn, \w
    multiply_either \c2, n, \w
    multiply_either \c3, nnn, \w
    .if split
    LX x, \second(sp)
    multiply_either \c0, v, x
    multiply_either \c1, vn, x
    multiply_either \c2, n, x
    multiply_either \c3, nnn, x
    .endif
.endm

.macro start c0, c1, c2, c3
    .if split
    LX bias, BIAS(sp)
    .endif
    mv \c0, bias
    mv \c1, bias
    mv \c2, bias
    mv \c3, bias
.endm

.macro round1 c
    .if wide
    round_wide_1 \c, rounder, x
    .else
    smmul.u \c, \c, rounder
    .endif
.endm

/* Requantizes four accumulators and writes their bytes side by side, as output row `row` from `out` on. */
.macro emit row, c0, c1, c2, c3
    .irp c, \c0, \c1, \c2, \c3
    .if once
    smmul.u \c, \c, multiplier
    .else
    high_multiply_1 \c, multiplier
    round1 \c
    .endif
    .endr
    narrow_4 \c0, \c2, \c1, \c3, zero, zero, upper
    SX \c0, (\row) * 4 * REGISTER_BYTES(out)
.endm

.macro load_stride1 row
    LX v, ((\row) * 8 + 0) * REGISTER_BYTES(in)
    LX x, ((\row) * 8 + 1) * REGISTER_BYTES(in)
    straddle16 x, v, x
.endm

.macro load_stride2 row
    LX v, ((\row) * 12 + 0) * REGISTER_BYTES(in)
    LX n, ((\row) * 12 + 1) * REGISTER_BYTES(in)
    LX nn, ((\row) * 12 + 2) * REGISTER_BYTES(in)
    straddle16 vn, v, n
    straddle16 nnn, n, nn
.endm

/* An input row of stride 1: the last row of the window for the first set, the middle for the second, the first for the
 * third.
 */
.macro row_stride1 row, l0, l1, l2, l3, m0, m1, m2, m3, f0, f1, f2, f3
    load_stride1 \row
    dot4_stride1 \l0, \l1, \l2, \l3, weights2, shifted2, SECOND2
    dot4_stride1 \m0, \m1, \m2, \m3, weights1, shifted1, SECOND1
    start \f0, \f1, \f2, \f3
    dot4_stride1 \f0, \f1, \f2, \f3, weights0, shifted0, SECOND0
    emit \row - 2, \l0, \l1, \l2, \l3
.endm

/* Two input rows of stride 2: the middle of the window for the first set, then its last, which is the second set's
 * first.
 */
.macro rows_stride2 row, l0, l1, l2, l3, f0, f1, f2, f3
    load_stride2 \row
    dot4_stride2 \l0, \l1, \l2, \l3, weights1, shifted1, SECOND1
    load_stride2 \row + 1
    dot4_stride2 \l0, \l1, \l2, \l3, weights2, shifted2, SECOND2
    start \f0, \f1, \f2, \f3
    dot4_stride2 \f0, \f1, \f2, \f3, weights0, shifted0, SECOND0
    emit (\row - 1) / 2, \l0, \l1, \l2, \l3
.endm

/* All output rows of one j. An iteration has three rows with stride 1, because three sets rotate, and two rows with stride 2.
 * One or two rows may remain.
 */
.macro all_rows
    .if stride == 1
    load_stride1 0
    start SET0
    dot4_stride1 SET0, weights0, shifted0, SECOND0
    load_stride1 1
    dot4_stride1 SET0, weights1, shifted1, SECOND1
    start SET1
    dot4_stride1 SET1, weights0, shifted0, SECOND0
    beq out, end, 3f
2:  row_stride1 2, SET0, SET1, SET2
    row_stride1 3, SET1, SET2, SET0
    row_stride1 4, SET2, SET0, SET1
    addi in, in, 3 * 8 * REGISTER_BYTES
    addi out, out, 3 * 4 * REGISTER_BYTES
    bne out, end, 2b
3:  LX x, LEFT(sp)
    beqz x, 4f
    row_stride1 2, SET0, SET1, SET2
    LX x, LEFT(sp)
    addi x, x, -1
    beqz x, 4f
    row_stride1 3, SET1, SET2, SET0
    .else
    load_stride2 0
    start SET0
    dot4_stride2 SET0, weights0, shifted0, SECOND0
    beq out, end, 3f
2:  rows_stride2 1, SET0, SET1
    rows_stride2 3, SET1, SET0
    addi in, in, 4 * 12 * REGISTER_BYTES
    addi out, out, 2 * 4 * REGISTER_BYTES
    bne out, end, 2b
3:  LX x, LEFT(sp)
    beqz x, 4f
    rows_stride2 1, SET0, SET1
    .endif
4:
.endm

.macro depthwise name, of_stride, is_unsigned, is_split, is_wide, is_once
    .set stride, \of_stride
    .set unsigned, \is_unsigned
    .set split, \is_split
    .set wide, \is_wide
    .set once, \is_once
    .set record, 6 + 3 * split       /* registers of params for each j */
    function \name
    addi sp, sp, -FRAME_BYTES
    save EVERY_SAVED
    li t0, 4 - stride                  /* output rows of an iteration */
    remu t1, a2, t0
    SX t1, LEFT(sp)
    sub t0, a2, t1
    slli t0, t0, 2 + REGISTER_SHIFT
    mv t1, a3
    pack_low16 zero, a4, a4
    li upper, 0xff00
    pack_low16 upper, upper, upper
    pack_all zero
    pack_all upper
    add end, out, t0
    addi t2, t1, 4 * record * REGISTER_BYTES
    SX t2, PARAMS_END(sp)
1:  SX in, IN(sp)                      /* one channel of each lane */
    SX out, OUT(sp)
    LX weights0, 0 * REGISTER_BYTES(t1)
    LX weights1, 1 * REGISTER_BYTES(t1)
    LX weights2, 2 * REGISTER_BYTES(t1)
    LX bias, 3 * REGISTER_BYTES(t1)
    LX multiplier, 4 * REGISTER_BYTES(t1)
    .if once
    LX zero, 5 * REGISTER_BYTES(t1)
    without_mark multiplier
    .else
    LX rounder, 5 * REGISTER_BYTES(t1)
    .endif
    .if wide
    without_mark rounder
    .endif
    .if split
    SX bias, BIAS(sp)
    LX t0, 6 * REGISTER_BYTES(t1)
    SX t0, SECOND0(sp)
    LX t0, 7 * REGISTER_BYTES(t1)
    SX t0, SECOND1(sp)
    LX t0, 8 * REGISTER_BYTES(t1)
    SX t0, SECOND2(sp)
    .endif
    addi t1, t1, record * REGISTER_BYTES
    SX t1, PARAMS(sp)
    .if stride == 1
    slli32_8 shifted0, weights0
    slli32_8 shifted1, weights1
    slli32_8 shifted2, weights2
    .endif
    all_rows
    LX in, IN(sp)
    LX out, OUT(sp)
    LX t1, PARAMS(sp)
    LX t2, PARAMS_END(sp)
    addi in, in, (1 + stride) * REGISTER_BYTES
    addi out, out, REGISTER_BYTES
    addi end, end, REGISTER_BYTES
    bne t1, t2, 1b

    leave EVERY_SAVED
    end_function \name
.endm

.irp s, 1, 2
depthwise rvp_depthwise3x3_s\s, \s, 0, 0, 0, 0
depthwise rvp_depthwise3x3_s\s\()u, \s, 1, 0, 0, 0
depthwise rvp_depthwise3x3_s\s\()us, \s, 1, 1, 0, 0
depthwise rvp_depthwise3x3_s\s\()_wide, \s, 0, 0, 1, 0
depthwise rvp_depthwise3x3_s\s\()u_wide, \s, 1, 0, 1, 0
depthwise rvp_depthwise3x3_s\s\()us_wide, \s, 1, 1, 1, 0
depthwise rvp_depthwise3x3_s\s\()_once, \s, 0, 0, 0, 1
depthwise rvp_depthwise3x3_s\s\()u_once, \s, 1, 0, 0, 1
depthwise rvp_depthwise3x3_s\s\()us_once, \s, 1, 1, 0, 1
.endr
