/* Direct convolution: a tile of 1 to 9 output rows times all output channels, requantized to int8. RV64 and RV32, P draft
 * 0.9.11.
 *
 *   void rvp_direct_s8_t<T>s<S>_r<R>(const struct call *call);      T taps, S stride, R rows; direct.c has the structure
 *
 * A chunk is four consecutive input channels of a pixel. A register has LANES lanes of 32 bits: 2 on RV64, 1 on RV32. A
 * half is 2 * LANES output channels; two halves make a block, and register j of half h holds channel 2 * j + h of the
 * block in its lower lane and that channel + 4 in its upper lane.
 *
 *   strip    [columns][chunks][SLOTS] registers: a chunk of SLOTS = (R - 1) * S + T pixels of consecutive rows, repeated in every
 *            lane. Neighbouring columns of the output start S columns of the strip apart
 *   weights  [halves][columns of the window][chunks][T][2] registers: four weights of each lane's channel
 *   params   [halves][3][2] registers: bias (zero points folded in), multiplier, rounder (packing.py). If the first rounder is 0,
 *            sums are rounded by one multiplication, and the second rounder has the zero points of both registers
 *
 * Output row r takes pixel r * S + t at tap t of the window, so a chunk of a pixel is loaded once for all taps that
 * need it. Register blocking for T = 3, S = 1, R = 9, one chunk: 11 + 6 loads for 54 smaqa, each 4 * LANES MACs.
 *
 *             pixel    0    1    2    3   ...   8    9   10       x: one load per pixel
 *   row 0   A00 A01   t0   t1   t2
 *   row 1   A10 A11        t0   t1   t2
 *   row 2   A20 A21             t0   t1                           t: two registers of weights for each tap
 *   ...                                   ...
 *   row 8   A80 A81                            t0   t1   t2
 *
 * 18 accumulators + 6 weights + x + strip, weights, end = 28 registers: all but sp, gp, tp. More taps take the
 * registers of the last rows, so R + T <= 12.
 *
 * The chunk loop is unrolled by UNROLL and entered in the middle, so that any number of chunks costs the same.
 */
.set single, 0                        /* two roundings */

#define UNROLL 4

#define strip a0
#define weights a1
#define end a2
#define x a3

#define ROW0 t0, t1
#define ROW1 t2, t3
#define ROW2 t4, t5
#define ROW3 t6, ra
#define ROW4 s0, s1
#define ROW5 s2, s3
#define ROW6 s4, s5
#define ROW7 s6, s7
#define ROW8 s8, s9

#define w0 a4
#define w1 a5
#define TAP0 w0, w1
#define TAP1 a6, a7
#define TAP2 s10, s11
#define TAP3 ROW8
#define TAP4 ROW7
#define TAP5 ROW6
#define TAP6 ROW5

/* The frame: 13 saved registers, values that the loop over halves cannot keep in registers, and the results of a first half. */
#define CALL FRAME(13)
#define STRIP FRAME(14)               /* the column's first chunk, minus the chunks that the entry skips */
#define ENTRY FRAME(15)               /* where the unrolled loop is entered */
#define SKIPPED FRAME(16)             /* bytes of weights that the entry skips */
#define WEIGHTS_END FRAME(17)
#define PARAMS FRAME(18)
#define OUT FRAME(19)
#define FIRST_OUT FRAME(20)
#define COLUMNS FRAME(21)             /* left to do */
#define SECOND FRAME(22)              /* -1 in the second half of a block, else 0 */
#define RESULTS FRAME(23)
#define FRAME_BYTES ((FRAME(32) + 15) & ~15)

/* Fields of struct call in direct.c. */
#define CALL_STRIP 0 * REGISTER_BYTES
#define CALL_WEIGHTS 1 * REGISTER_BYTES
#define CALL_PARAMS 2 * REGISTER_BYTES
#define CALL_OUT 3 * REGISTER_BYTES
#define CALL_CHUNKS 4 * REGISTER_BYTES
#define CALL_HALVES 5 * REGISTER_BYTES
#define CALL_COLUMNS 6 * REGISTER_BYTES
#define CALL_STRIP_STEP 7 * REGISTER_BYTES
#define CALL_OUT_ROW_STEP 8 * REGISTER_BYTES
#define CALL_OUT_COLUMN_STEP 9 * REGISTER_BYTES
#define CALL_ZERO_POINT 10 * REGISTER_BYTES
#define CALL_UPPER_BYTES 11 * REGISTER_BYTES
#define CALL_CLAMPS 12 * REGISTER_BYTES
#define CALL_LOWEST 13 * REGISTER_BYTES
#define CALL_HIGHEST 14 * REGISTER_BYTES

#include "frame_asm.h"
#include "products_asm.h"
#include "requantize_asm.h"

/* `step` for row `row`, with its two accumulators and the further arguments. */
.macro at_row row, step, arguments:vararg
    .if \row == 0
    \step ROW0, \arguments
    .elseif \row == 1
    \step ROW1, \arguments
    .elseif \row == 2
    \step ROW2, \arguments
    .elseif \row == 3
    \step ROW3, \arguments
    .elseif \row == 4
    \step ROW4, \arguments
    .elseif \row == 5
    \step ROW5, \arguments
    .elseif \row == 6
    \step ROW6, \arguments
    .elseif \row == 7
    \step ROW7, \arguments
    .else
    \step ROW8, \arguments
    .endif
.endm

/* `step` for each row in use, with its number. */
.macro for_rows step
    .set row, 0
    .rept rows
    at_row row, \step, row
    .set row, row + 1
    .endr
.endm

/* `step` for each tap in use, with its two weights and its number. */
.macro for_taps step
    \step TAP0, 0
    \step TAP1, 1
    \step TAP2, 2
    .if taps > 3
    \step TAP3, 3
    \step TAP4, 4
    .endif
    .if taps > 5
    \step TAP5, 5
    \step TAP6, 6
    .endif
.endm

.macro start_from_bias c0, c1, row
    .if \row > 0
    mv \c0, t0
    mv \c1, t1
    .endif
.endm

.macro load_weights v0, v1, tap
    LX \v0, ((chunk * taps + \tap) * 2 + 0) * REGISTER_BYTES(weights)
    LX \v1, ((chunk * taps + \tap) * 2 + 1) * REGISTER_BYTES(weights)
.endm

.macro multiply_accumulate c0, c1, v0, v1
    smaqa \c0, x, \v0
    smaqa \c1, x, \v1
.endm

/* The row that takes pixel `slot` at this tap, if there is one. */
.macro multiply_tap v0, v1, tap
    .set distance, slot - \tap
    .if distance >= 0
    .if distance % stride == 0
    .if distance / stride < rows
    .set row, distance / stride
    at_row row, multiply_accumulate, \v0, \v1
    .endif
    .endif
    .endif
.endm

.macro multiply_pixel
    LX x, (chunk * slots + slot) * REGISTER_BYTES(strip)
    for_taps multiply_tap
.endm

.macro high_multiply c0, c1, row
    high_multiply_1 \c0, w0
    high_multiply_1 \c1, w1
.endm

.macro round c0, c1, row
    smmul.u \c0, \c0, w0
    smmul.u \c1, \c1, w1
.endm

.macro round_wide c0, c1, row
    round_wide_1 \c0, w0, x
    round_wide_1 \c1, w1, x
.endm

/* Two registers of 32-bit lanes to 16 bits, plus zero points, into c0. */
.macro narrow c0, c1, row
    pack_low16 \c0, \c0, \c1
    add16 \c0, \c0, w0
.endm

/* Clipped to 8 bits. */
.macro keep c0, c1, row
    sclip16_7 \c0, \c0
    SX \c0, RESULTS + \row * REGISTER_BYTES(sp)
.endm

/* Interleaves the bytes of the first half with the bytes of the second, which are in the upper halves, clipped to 8 bits. */
.macro join c0, c1, row
    LX x, RESULTS + \row * REGISTER_BYTES(sp)
    kslli16_8 \c0, \c0
    select_bits \c0, w0, \c0, x
.endm

.macro clamp c0, c1, row
    smax8 \c0, \c0, w0
    smin8 \c0, \c0, w1
.endm

.macro write c0, c1, row
    SX \c0, 0(x)
    .if \row < rows - 1
    add x, x, w1
    .endif
.endm

.macro direct name, tap_count, stride_, row_count
    .set taps, \tap_count
    .set stride, \stride_
    .set rows, \row_count
    .set slots, (rows - 1) * stride + taps
    function \name
    addi sp, sp, -FRAME_BYTES
    save EVERY_SAVED
    SX a0, CALL(sp)
    mv x, a0
    LX t0, CALL_COLUMNS(x)
    SX t0, COLUMNS(sp)
    LX t0, CALL_OUT(x)
    SX t0, FIRST_OUT(sp)
    SX zero, SECOND(sp)

    LX t0, CALL_CHUNKS(x)
    LX t1, CALL_HALVES(x)
    LX t2, CALL_WEIGHTS(x)
    LX strip, CALL_STRIP(x)
    left_out t3, t0
    li t4, 2 * taps * REGISTER_BYTES
    mul t1, t1, t0                     /* where the weights end */
    mul t1, t1, t4
    add t1, t1, t2
    SX t1, WEIGHTS_END(sp)
    mul t4, t4, t3
    SX t4, SKIPPED(sp)
    li t4, slots * REGISTER_BYTES
    mul t0, t0, t4
    add end, strip, t0
    mul t4, t4, t3
    sub strip, strip, t4
    SX strip, STRIP(sp)
    li t4, (slots + 2 * taps + 2 * taps * rows) * 4 /* bytes of code of one chunk */
    mul t4, t4, t3
    lla t0, 3f
    add t0, t0, t4
    SX t0, ENTRY(sp)

1:  LX x, CALL(sp)                     /* a column of the output */
    LX w0, CALL_PARAMS(x)
    LX w1, FIRST_OUT(sp)
    LX weights, CALL_WEIGHTS(x)
    SX w0, PARAMS(sp)
    SX w1, OUT(sp)

2:  LX w0, PARAMS(sp)                  /* a half of a block of channels */
    LX t0, 0 * REGISTER_BYTES(w0)
    LX t1, 1 * REGISTER_BYTES(w0)
    for_rows start_from_bias
    LX w0, SKIPPED(sp)
    LX w1, ENTRY(sp)
    LX strip, STRIP(sp)
    sub weights, weights, w0
    jr w1

    .option push
    .option norvc
    .balign 4
3:
    .set chunk, 0
    .rept UNROLL
    for_taps load_weights
    .set slot, 0
    .rept slots
    multiply_pixel
    .set slot, slot + 1
    .endr
    .set chunk, chunk + 1
    .endr
    .option pop
    addi strip, strip, UNROLL * slots * REGISTER_BYTES
    addi weights, weights, UNROLL * taps * 2 * REGISTER_BYTES
    bne strip, end, 3b

    LX strip, PARAMS(sp)
    LX w0, 2 * REGISTER_BYTES(strip)
    LX w1, 3 * REGISTER_BYTES(strip)
    LX x, 4 * REGISTER_BYTES(strip)
    bnez x, 7f
    for_rows round
    LX w0, 5 * REGISTER_BYTES(strip)
4:  addi strip, strip, 6 * REGISTER_BYTES
    SX strip, PARAMS(sp)
    LX strip, CALL(sp)
    LX w1, SECOND(sp)
    not x, w1
    SX x, SECOND(sp)
    for_rows narrow
    bnez w1, 5f
    for_rows keep
    j 2b

5:  LX w0, CALL_UPPER_BYTES(strip)
    LX w1, CALL_CLAMPS(strip)
    for_rows join
    beqz w1, 6f
    LX w0, CALL_LOWEST(strip)
    LX w1, CALL_HIGHEST(strip)
    for_rows clamp
6:  LX x, OUT(sp)
    LX w1, CALL_OUT_ROW_STEP(strip)
    addi w0, x, REGISTER_BYTES
    SX w0, OUT(sp)
    for_rows write
    LX w0, WEIGHTS_END(sp)
    bne weights, w0, 2b

    LX t0, COLUMNS(sp)
    addi t0, t0, -1
    beqz t0, 8f
    SX t0, COLUMNS(sp)
    LX t0, CALL_STRIP_STEP(strip)
    LX t1, STRIP(sp)
    LX t2, FIRST_OUT(sp)
    LX t3, CALL_OUT_COLUMN_STEP(strip)
    add end, end, t0
    add t1, t1, t0
    add t2, t2, t3
    SX t1, STRIP(sp)
    SX t2, FIRST_OUT(sp)
    j 1b

7:  for_rows high_multiply
    LX w0, 4 * REGISTER_BYTES(strip)
    LX w1, 5 * REGISTER_BYTES(strip)
    bltz w0, 9f                        /* the sign of a half's first rounder marks a wide block */
    for_rows round
10: LX w0, CALL(sp)
    LX w0, CALL_ZERO_POINT(w0)
    j 4b

9:  without_mark w0
    for_rows round_wide
    j 10b

8:  leave EVERY_SAVED
    end_function \name
.endm

.irp r, 1, 2, 3, 4, 5, 6, 7, 8, 9
direct rvp_direct_s8_t3s1_r\r, 3, 1, \r
direct rvp_direct_s8_t3s2_r\r, 3, 2, \r
.endr
.irp r, 1, 2, 3, 4, 5, 6, 7
direct rvp_direct_s8_t5s1_r\r, 5, 1, \r
.endr
.irp r, 1, 2, 3, 4, 5
direct rvp_direct_s8_t7s1_r\r, 7, 1, \r
.endr
