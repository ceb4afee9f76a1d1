/* Rows of outputs of a depthwise window, four side by side at a time, requantized to 8 bits. RV64 and RV32, P draft 0.9.11.
 *
 *   void rvp_depthwise_plane_rows(const int8_t *first, int8_t *out, const int8_t *record,
 *                                 const struct rvp_depthwise_rows *rows);
 *   void rvp_depthwise_image_rows(…)
 *
 * depthwise_planes.c says what taps, pairs and quads are and how a group's record lies; depthwise_rows.h has the structure.
 * In a plane pixels of neighbouring outputs are neighbouring registers; in the image they are `input_step` bytes apart, and
 * `groups` groups follow each other, a register and a record apart.
 *
 *   sums    [channel][output]: 16 registers, whose channels are those of the group in each lane
 *   pairs   [output]: pixels of channels 0 and 1 (low) and of 2 and 3 (high) of both taps; the fifth, for a quad, is where
 *           the first was
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
/* Pairs of four outputs, and of the same as the next tap meets them. */
#define LOW s9, s11, a1, a3
#define HIGH s10, a0, a2, a4
#define NEXT_LOW s11, a1, a3, s9
#define NEXT_HIGH a0, a2, a4, s10
#define step a3                       /* of the image; the last of LOW takes its place */

#define px a5                         /* where the first taps of pairs are, and the second ones */
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

#define OFFSET FRAME(13)               /* where the offsets of the next taps are */
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
#define FRAME_BYTES ((FRAME(28) + 15) & ~15)

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

/* How a group is requantized: depthwise_rows.h. */
#define HOW_SHORT 0
#define HOW_WIDE 1

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

/* The pixels of both taps of an output, packed. `goes_on`: to the next output's. */
.macro load_pair place, low, high, goes_on
    .if direct
    LX v, 0(px)
    LX \high, 0(py)
    .if \goes_on
    add px, px, step
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

.macro load_step
    .if direct
    LX step, STRUCTURE(sp)
    LX step, FIELD_INPUT_STEP(step)
    .endif
.endm

/* Both addresses of the taps whose offsets v points to, and on to the next. */
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
    LX \rd, 0(px)
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

/* The sums to bytes, in the sums of channel 0. Loses w, of which x of round_wide_4 is no part. */
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
    SX \rd, 0(\to)
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

.macro all_rows name, of_image
    .set direct, \of_image
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
    LX t0, FIELD_ROWS(a3)
.L\name\()_row:
    SX t0, ROWS(sp)
    SX a0, FIRST(sp)
    SX a1, TO(sp)
    SX a0, ROW_FIRST(sp)
    SX a1, ROW_TO(sp)
    LX t0, FIELD_COLUMNS(a3)
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
    end_function \name
.endm

all_rows rvp_depthwise_plane_rows, 0
all_rows rvp_depthwise_image_rows, 1
