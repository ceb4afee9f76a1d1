/* Rows of outputs of a depthwise convolution, four neighbouring outputs at a time, requantized to 8 bits. RV64 and RV32, P draft
 * 0.9.11.
 *
 *   void rvp_depthwise_plane_rows(const int8_t *first, int8_t *out, const int8_t *record,
 *                                 const struct rvp_depthwise_rows *rows);
 *   void rvp_depthwise_image_rows(…)
 *   void rvp_depthwise_lane_rows(…)          RV64
 *
 * depthwise_planes.c defines taps, pairs and quads and the layout of a group's record; depthwise_rows.h has the structure.
 *
 *   plane_rows  pixels of neighbouring outputs are consecutive registers
 *   image_rows  they are `input_step` bytes apart in the image. It computes `groups` groups; the next group is one register and one
 *               record later
 *   lane_rows   as image_rows, for pixels that are aligned to lanes only: it loads and stores the lanes of a group one by one
 *
 * Registers:
 *
 *   sums    [channel][output]: 16 registers, each lane has channels of the group
 *   pairs   [output]: pixels of both taps, channels 0 and 1 (low) and 2 and 3 (high). The fifth pair, for a quad, replaces the first
 *
 * If the weights of a window are two words (`few`), they stay in registers.
 */
.set single, 0                        /* two roundings */

/* The sums of a channel. */
#define CHANNEL0 t0, t1, t2, t3
#define CHANNEL1 t4, t5, t6, s0
#define CHANNEL2 s1, s2, s3, s4
#define CHANNEL3 s5, s6, s7, s8
/* The sums of an output, by channel. */
#define OUTPUT0 t0, t4, s1, s5
#define OUTPUT1 t1, t5, s2, s6
#define OUTPUT2 t2, t6, s3, s7
#define OUTPUT3 t3, s0, s4, s8
/* The same, as narrow_4 takes them. */
#define NARROW0 t0, s1, t4, s5
#define NARROW1 t1, s2, t5, s6
#define NARROW2 t2, s3, t6, s7
#define NARROW3 t3, s4, s0, s8
/* Pairs of four outputs, and the same pairs shifted by one output for the next tap. */
#define LOW s9, s11, a1, a3
#define HIGH s10, a0, a2, a4
#define NEXT_LOW s11, a1, a3, s9
#define NEXT_HIGH a0, a2, a4, s10
#define step a3                       /* of the image; the last register of LOW is the same */

#define px a5                         /* addresses of the first taps of pairs, and of the second taps */
#define py a6
#define w a7                          /* weights, constants */
#define v ra                          /* a register of weights; free between the macros */

/* While sums are requantized: */
#define w0 s9
#define w1 s10
#define w2 s11
#define w3 a0
#define upper a1
#define zero0 a2                      /* zero points of channels 0 and 2 */
#define zero1 a3                      /* of 1 and 3 */
#define x a5

#define OFFSET FRAME(13)               /* address of the next taps' offsets */
#define FIRST FRAME(14)                /* the first tap of the next output */
#define TO FRAME(15)
#define LEFT FRAME(16)                 /* outputs of the row, rows, groups */
#define ROWS FRAME(17)
#define GROUPS FRAME(18)
#define ROW_FIRST FRAME(19)            /* of the row */
#define ROW_TO FRAME(20)
#define GROUP_FIRST FRAME(21)
#define GROUP_TO FRAME(22)
#define RECORD FRAME(23)
#define STRUCTURE FRAME(24)
#define PAIRS FRAME(25)                /* where the offsets of pairs begin and end */
#define PAIRS_END FRAME(26)
#define UPPER FRAME(27)                /* 0xff00 in every 16-bit lane */
#define BIASES FRAME(28)               /* of the four channels, for two words of weights */
#define ROUNDERS FRAME(32)
#define STEP FRAME(36)
#define INPUT_STEP FRAME(37)
#define FRAME_BYTES ((FRAME(38) + 15) & ~15)

/* Fields of rvp_depthwise_rows. */
#define FIELD_ROWS FRAME(0)
#define FIELD_COLUMNS FRAME(1)
#define FIELD_ROW_STEP FRAME(2)
#define FIELD_INPUT_ROW_STEP FRAME(3)
#define FIELD_STEP FRAME(4)
#define FIELD_INPUT_STEP FRAME(5)
#define FIELD_GROUPS FRAME(6)
#define FIELD_RECORD_BYTES FRAME(7)
#define FIELD_OFFSETS FRAME(8)
#define FIELD_PAIRS FRAME(9)
#define FIELD_PAIRS_END FRAME(10)
#define FIELD_HAS_SINGLE FRAME(11)
#define FIELD_HOW FRAME(12)
#define FIELD_ZERO_POINT FRAME(13)
#define FIELD_BOUNDED FRAME(14)
#define FIELD_LOWEST FRAME(15)
#define FIELD_HIGHEST FRAME(16)
#define FIELD_FLIP FRAME(17)
#define FIELD_FEW FRAME(18)

/* Enumerations of depthwise_rows.h. */
#define HOW_WIDE 1
#define FEW_QUAD 1
#define FEW_PAIRS 2
#define FEW_SINGLE 3
#define FEW_ONCE 4

#include "frame_asm.h"
#include "products_asm.h"
#include "requantize_asm.h"

/* A macro's lines for the first `count` of four outputs. */
.macro for_output number, line:vararg
    .if count > \number
    \line
    .endif
.endm

.macro start bias, s0_, s1_, s2_, s3_
    LX \s0_, (\bias) * REGISTER_BYTES(w)
    for_output 1, mv \s1_, \s0_
    for_output 2, mv \s2_, \s0_
    for_output 3, mv \s3_, \s0_
.endm

/* The channels of a group of a pixel of the image. */
.macro take rd, from, free
    .if by_lanes
    lw \rd, 0(\from)
    lw \free, 4(\from)
    pack \rd, \rd, \free
    .else
    LX \rd, 0(\from)
    .endif
.endm

/* Stores the results of a group: in the image if pixels are read there. Overwrites rd. */
.macro put rd, to
    .if by_lanes
    sw \rd, 0(\to)
    srli \rd, \rd, 32
    sw \rd, 4(\to)
    .else
    SX \rd, 0(\to)
    .endif
.endm

.macro load_step
    .if direct
    LX step, STRUCTURE(sp)
    LX step, FIELD_INPUT_STEP(step)
    .endif
.endm

/* The pixels of both taps of an output, packed. `goes_on`: to the next output's. */
.macro load_pair place, low, high, goes_on
    .if direct
    take v, px, \high
    .if \goes_on
    add px, px, step
    .endif
    take \high, py, \low
    .if \goes_on
    .if by_lanes && \place == 3          /* low is step */
    load_step
    .endif
    add py, py, step
    .endif
    .else
    LX v, (\place) * REGISTER_BYTES(px)
    LX \high, (\place) * REGISTER_BYTES(py)
    .endif
    pack_low16 \low, v, \high
    pack_high16 \high, v, \high
.endm

/* Adds the products of a register of weights and a channel's pixels. */
.macro products place, s0_, s1_, s2_, s3_, x0, x1, x2, x3
    LX v, (\place) * REGISTER_BYTES(w)
    smaqa \s0_, \x0, v
    for_output 1, smaqa \s1_, \x1, v
    for_output 2, smaqa \s2_, \x2, v
    for_output 3, smaqa \s3_, \x3, v
.endm

/* Loads the addresses of both taps from the offsets at v, and advances v. */
.macro next_taps
    lw px, 0(v)
    lw py, 4(v)
    addi v, v, 8
    SX v, OFFSET(sp)
    LX v, FIRST(sp)
    add px, px, v
    add py, py, v
    load_step
.endm

/* Adds the products of a pair of taps, of two if it is a quad. */
.macro add_taps is_quad
    next_taps
    load_pair 0, s9, s10, (\is_quad) || count > 1
    for_output 1, load_pair 1, s11, a0, (\is_quad) || count > 2
    for_output 2, load_pair 2, a1, a2, (\is_quad) || count > 3
    for_output 3, load_pair 3, a3, a4, \is_quad
    products 0, CHANNEL0, LOW
    products 1, CHANNEL1, LOW
    products 2, CHANNEL2, HIGH
    products 3, CHANNEL3, HIGH
    .if \is_quad
    .if count == 4
    load_pair 4, s9, s10, 0
    .elseif count == 3
    load_pair 3, a3, a4, 0
    .elseif count == 2
    load_pair 2, a1, a2, 0
    .else
    load_pair 1, s11, a0, 0
    .endif
    products 4, CHANNEL0, NEXT_LOW
    products 5, CHANNEL1, NEXT_LOW
    products 6, CHANNEL2, NEXT_HIGH
    products 7, CHANNEL3, NEXT_HIGH
    .endif
    addi w, w, 4 * (1 + \is_quad) * REGISTER_BYTES
    LX v, OFFSET(sp)
.endm

.macro load_pixel place, rd
    .if direct
    take \rd, px, v
    .if \place + 1 < count
    add px, px, step
    .endif
    .else
    LX \rd, (\place) * REGISTER_BYTES(px)
    .endif
.endm

/* Adds the products of the tap whose offset v points to. */
.macro add_tap
    lw px, 0(v)
    LX v, FIRST(sp)
    add px, px, v
    load_step
    load_pixel 0, s9
    for_output 1, load_pixel 1, s11
    for_output 2, load_pixel 2, a1
    for_output 3, load_pixel 3, a3
    products 0, CHANNEL0, LOW
    products 1, CHANNEL1, LOW
    products 2, CHANNEL2, LOW
    products 3, CHANNEL3, LOW
.endm

/* One line for the sums of each output, with the registers of a macro of four. */
.macro for_sums macro_
    \macro_ OUTPUT0
    for_output 1, \macro_ OUTPUT1
    for_output 2, \macro_ OUTPUT2
    for_output 3, \macro_ OUTPUT3
.endm

/* Converts the sums to bytes, in the sums of channel 0. Overwrites w, but not x of round_wide_4. */
.macro requantize
    LX w, RECORD(sp)
    LX a4, STRUCTURE(sp)
    LX v, FIELD_HOW(a4)
    load_4 w, 4
    li x, HOW_WIDE
    bgtu v, x, 7f
    for_sums high_multiply_4
    load_4 w, 8
    LX zero0, FIELD_ZERO_POINT(a4)
    mv zero1, zero0
    beq v, x, 6f
    for_sums round_4
    j 8f
6:  without_mark w0
    for_sums round_wide_4
    j 8f
7:  without_mark w0                    /* once: all of the product, and zero points in place of rounders */
    LX zero0, 8 * REGISTER_BYTES(w)
    LX zero1, 9 * REGISTER_BYTES(w)
    for_sums round_4
8:  LX upper, UPPER(sp)
    narrow_4 NARROW0, zero0, zero1, upper
    for_output 1, narrow_4 NARROW1, zero0, zero1, upper
    for_output 2, narrow_4 NARROW2, zero0, zero1, upper
    for_output 3, narrow_4 NARROW3, zero0, zero1, upper
    LX v, FIELD_BOUNDED(a4)
    beqz v, 9f
    LX w0, FIELD_LOWEST(a4)
    LX w1, FIELD_HIGHEST(a4)
    LX w2, FIELD_FLIP(a4)
    clamp_bytes t0, w0, w1, w2
    for_output 1, clamp_bytes t1, w0, w1, w2
    for_output 2, clamp_bytes t2, w0, w1, w2
    for_output 3, clamp_bytes t3, w0, w1, w2
9:
.endm

.macro write rd, to
    put \rd, \to
    add \to, \to, x
.endm

/* `number` outputs. */
.macro outputs number
    .set count, \number
    LX w, RECORD(sp)
    LX v, STRUCTURE(sp)
    start 0, CHANNEL0
    LX v, FIELD_OFFSETS(v)
    LX px, PAIRS(sp)
    start 1, CHANNEL1
    start 2, CHANNEL2
    start 3, CHANNEL3
    addi w, w, 12 * REGISTER_BYTES
    beq v, px, 2f
1:  add_taps 1
    LX px, PAIRS(sp)
    bne v, px, 1b
2:  LX px, PAIRS_END(sp)
    beq v, px, 4f
3:  add_taps 0
    LX px, PAIRS_END(sp)
    bne v, px, 3b
4:  LX px, STRUCTURE(sp)
    LX px, FIELD_HAS_SINGLE(px)
    beqz px, 5f
    add_tap
5:  requantize
    LX v, TO(sp)
    LX x, FIELD_STEP(a4)
    write t0, v
    for_output 1, write t1, v
    for_output 2, write t2, v
    for_output 3, write t3, v
.endm

/* Windows of two words of weights, which stay in registers with all multipliers: a quad, two pairs, or a pair and a single
 * tap. Outputs are computed one after the other, two per iteration.
 */
#define SUMS t0, t1, t2, t3
#define WORD0 t4, t5, t6, s0           /* weights */
#define WORD1 s1, s2, s3, s4
#define few_zero0 s9                   /* zero points, as above; without `once` all in the first */
#define few_zero1 s10
#define few_upper s11
#define pz a2                          /* the taps of the second pair, or the single tap; for a quad, its second pair */
#define pw a3
#define left a4                        /* outputs of the row less 2 */
#define to a7

.macro few_products low, high, u0, u1, u2, u3
    smaqa t0, \low, \u0
    smaqa t1, \low, \u1
    smaqa t2, \high, \u2
    smaqa t3, \high, \u3
.endm

.macro few_pair place, low, high, first, second
    .if direct
    take v, \first, \high
    take \high, \second, \low
    .else
    LX v, (\place) * REGISTER_BYTES(\first)
    LX \high, (\place) * REGISTER_BYTES(\second)
    .endif
    pack_low16 \low, v, \high
    pack_high16 \high, v, \high
.endm

.macro few_start
    LX t0, BIASES + FRAME(0)(sp)
    LX t1, BIASES + FRAME(1)(sp)
    LX t2, BIASES + FRAME(2)(sp)
    LX t3, BIASES + FRAME(3)(sp)
.endm

.macro few_scale number, sum, multiplier
    .if once
    smmul.u \sum, \sum, \multiplier
    .else
    kwmmul.u \sum, \sum, \multiplier
    LX v, ROUNDERS + FRAME(\number)(sp)
    smmul.u \sum, \sum, v
    .endif
.endm

.macro few_finish
    few_scale 0, t0, s5
    few_scale 1, t1, s6
    few_scale 2, t2, s7
    few_scale 3, t3, s8
    .if once
    narrow_4 t0, t2, t1, t3, few_zero0, few_zero1, few_upper
    .else
    narrow_4 t0, t2, t1, t3, few_zero0, few_zero0, few_upper
    .endif
    put t0, to
    LX v, STEP(sp)
    add to, to, v
.endm

/* Pointers to the next output's pixels: of an image, or of a plane two at once. */
.macro few_advance outputs, pointers:vararg
    .if direct
    LX v, INPUT_STEP(sp)
    .irp p, \pointers
    add \p, \p, v
    .endr
    .elseif \outputs == 2
    .irp p, \pointers
    addi \p, \p, 2 * REGISTER_BYTES
    .endr
    .endif
.endm

/* An output of a quad. Its first pair is already packed; its second pair is the next output's first. */
.macro few_quad number, low, high, next_low, next_high
    few_start
    few_products \low, \high, WORD0
    few_advance \number, px, py
    few_pair 2 - \number, \next_low, \next_high, px, py
    few_products \next_low, \next_high, WORD1
    few_finish
.endm

.macro few_apart number, kind
    few_start
    few_pair \number - 1, a0, a1, px, py
    few_products a0, a1, WORD0
    .if \kind == FEW_SINGLE
    .if direct
    take a0, pz, v
    .else
    LX a0, (\number - 1) * REGISTER_BYTES(pz)
    .endif
    few_products a0, a0, WORD1
    few_advance \number, px, py, pz
    .else
    few_pair \number - 1, a0, a1, pz, pw
    few_products a0, a1, WORD1
    few_advance \number, px, py, pz, pw
    .endif
    few_finish
.endm

/* The pointer of one more tap: its offset plus a0, the first tap's address. */
.macro few_pointer number, rd
    lw \rd, 4 * (\number)(v)
    add \rd, \rd, a0
.endm

/* A row of one kind, requantized according to `once`; continues at `done`. */
.macro few_row done, kind
    LX v, FIELD_OFFSETS(a3)
    few_pointer 0, px
    few_pointer 1, py
    .if \kind == FEW_QUAD
    few_pair 0, a0, a1, px, py
7:  few_quad 1, a0, a1, a2, a3
    few_quad 2, a2, a3, a0, a1
    .else
    few_pointer 2, pz
    .if \kind == FEW_PAIRS
    few_pointer 3, pw
    .endif
7:  few_apart 1, \kind
    few_apart 2, \kind
    .endif
    addi left, left, -2
    bgez left, 7b
    j \done
.endm

/* The constants of a group that all its rows need, from the record in a2. */
.macro few_group
    .irp j, 0, 1, 2, 3
    LX t1, (\j) * REGISTER_BYTES(a2)
    LX t2, (8 + \j) * REGISTER_BYTES(a2)
    SX t1, BIASES + FRAME(\j)(sp)
    SX t2, ROUNDERS + FRAME(\j)(sp)
    .endr
    LX t1, FIELD_STEP(a3)
    LX t2, FIELD_INPUT_STEP(a3)
    SX t1, STEP(sp)
    SX t2, INPUT_STEP(sp)
.endm

/* Sets up a row of t0 outputs. */
.macro few_constants
    addi left, t0, -2
    mv to, a1
    LX v, RECORD(sp)
    .set place, 12
    .irp r, t4, t5, t6, s0, s1, s2, s3, s4
    LX \r, place * REGISTER_BYTES(v)
    .set place, place + 1
    .endr
    .set place, 4
    .irp r, s5, s6, s7, s8
    LX \r, place * REGISTER_BYTES(v)
    .set place, place + 1
    .endr
    LX few_upper, UPPER(sp)
.endm

/* A row of the kind in t1. */
.macro few_outputs done
    few_constants
    andi t2, t1, FEW_ONCE
    bnez t2, 3f
    .set once, 0
    LX few_zero0, FIELD_ZERO_POINT(a3)
    addi t1, t1, -FEW_PAIRS
    bltz t1, 1f
    bgtz t1, 2f
    few_row \done, FEW_PAIRS
1:  few_row \done, FEW_QUAD
2:  few_row \done, FEW_SINGLE
3:  .set once, 1
    LX few_zero0, 8 * REGISTER_BYTES(v)
    LX few_zero1, 9 * REGISTER_BYTES(v)
    without_mark s5
    addi t1, t1, -FEW_ONCE - FEW_PAIRS
    bltz t1, 4f
    bgtz t1, 5f
    few_row \done, FEW_PAIRS
4:  few_row \done, FEW_QUAD
5:  few_row \done, FEW_SINGLE
.endm

.macro all_rows name, of_image, of_lanes
    .set direct, \of_image
    .set by_lanes, \of_lanes
    function \name
    addi sp, sp, -FRAME_BYTES
    save EVERY_SAVED
    LX t0, FIELD_GROUPS(a3)
    LX t1, FIELD_PAIRS(a3)
    LX t2, FIELD_PAIRS_END(a3)
    SX a2, RECORD(sp)
    SX a3, STRUCTURE(sp)
    SX t1, PAIRS(sp)
    SX t2, PAIRS_END(sp)
    upper_bytes t3
    SX t3, UPPER(sp)
.L\name\()_group:                       /* first tap and output in a0 and a1, the structure in a3, groups in t0 */
    SX t0, GROUPS(sp)
    SX a0, GROUP_FIRST(sp)
    SX a1, GROUP_TO(sp)
    LX t0, FIELD_FEW(a3)
    beqz t0, .L\name\()_no_few
    few_group
.L\name\()_no_few:
    LX t0, FIELD_ROWS(a3)
.L\name\()_row:
    SX t0, ROWS(sp)
    SX a0, FIRST(sp)
    SX a1, TO(sp)
    SX a0, ROW_FIRST(sp)
    SX a1, ROW_TO(sp)
    LX t1, FIELD_FEW(a3)
    LX t0, FIELD_COLUMNS(a3)
    bnez t1, .L\name\()_few
    addi t0, t0, -4
    SX t0, LEFT(sp)
    bltz t0, .L\name\()_tail
.L\name\()_four:
    outputs 4
    SX v, TO(sp)
    LX v, FIRST(sp)
    LX t0, LEFT(sp)
    .if direct
    LX x, FIELD_INPUT_STEP(a4)
    slli x, x, 2
    add v, v, x
    .else
    addi v, v, 4 * REGISTER_BYTES
    .endif
    SX v, FIRST(sp)
    addi t0, t0, -4
    SX t0, LEFT(sp)
    bgez t0, .L\name\()_four
.L\name\()_tail:                        /* outputs left less 4 in t0 */
    li t1, -3
    beq t0, t1, .L\name\()_one
    blt t0, t1, .L\name\()_row_done
    li t1, -2
    beq t0, t1, .L\name\()_two
    outputs 3
    j .L\name\()_row_done
.L\name\()_two:
    outputs 2
    j .L\name\()_row_done
.L\name\()_one:
    outputs 1
.L\name\()_row_done:
    LX a3, STRUCTURE(sp)
    LX t0, ROWS(sp)
    LX a0, ROW_FIRST(sp)
    LX a1, ROW_TO(sp)
    LX t1, FIELD_INPUT_ROW_STEP(a3)
    LX t2, FIELD_ROW_STEP(a3)
    addi t0, t0, -1
    add a0, a0, t1
    add a1, a1, t2
    bnez t0, .L\name\()_row
    LX t0, GROUPS(sp)
    LX a0, GROUP_FIRST(sp)
    LX a1, GROUP_TO(sp)
    LX a2, RECORD(sp)
    LX t1, FIELD_RECORD_BYTES(a3)
    addi t0, t0, -1
    addi a0, a0, REGISTER_BYTES
    addi a1, a1, REGISTER_BYTES
    add a2, a2, t1
    SX a2, RECORD(sp)
    bnez t0, .L\name\()_group
    leave EVERY_SAVED
.L\name\()_few:
    few_outputs .L\name\()_few_done
.L\name\()_few_done:                  /* one output is left, or none */
    LX v, STRUCTURE(sp)
    LX v, FIELD_OFFSETS(v)
    lw v, 0(v)
    sub px, px, v
    SX px, FIRST(sp)
    SX to, TO(sp)
    addi t0, left, -2
    j .L\name\()_tail
    end_function \name
.endm

all_rows rvp_depthwise_plane_rows, 0, 0
all_rows rvp_depthwise_image_rows, 1, 0
#if LANES == 2
all_rows rvp_depthwise_lane_rows, 1, 1
#endif
