/* GEMM of a panel of 1 to 4 pixels with pairs of output channels, requantized to 8 bits. Thumb-2 with the DSP extension.
 *
 *   void arm_dsp_gemm_<ab|bytes>_r<R>_<rows|planes>[_long|_once|_full](const int32_t *panel, const int32_t *pairs, void *out, int count,
 *                                                          const int32_t *fields);
 *
 * A step is two consecutive elements of the depth. The panel holds them as int16, a word for each pixel; a word of weights
 * holds them for both channels A and B of a pair:
 *
 *   ab      two halfwords 256 * b + a. The word itself is a factor: it adds x * (256 * b + a) to S, and its low bytes add x * a
 *           to A. B is (S - A) >> 8: exact while 256 * B fits int32, which is proved when the weights are packed.
 *   bytes   a, b of the first element, a, b of the second. For any weights, also with a zero point.
 *
 * Register blocking of one step, ab (R = 4): 12 instructions for 16 multiply-accumulates.
 *
 *              w & 0xff   w           <- weights, 1 load and 1 sxtb16
 *   pixel 0  x | A0       S0
 *   pixel 1  x | A1       S1          x: 2 ldrd for four pixels
 *   pixel 2  x | A2       S2
 *   pixel 3  x | A3       S3          8 sums + 2 weights + 2 pixels + panel, pairs = r0-r12 and lr
 *
 * Three pixels leave registers for two steps of weights: 17 instructions for 24 multiply-accumulates. They need an even
 * number of steps.
 *
 *   panel   [steps][R] words; for `bytes` [R] more: the term of the weights' zero point for the sums of each pixel
 *   pairs   [count][6 + steps] words: bias of A, bias of B (ab: 256 * B + A), weights, the scale of A and B (rounding.py): two
 *           multipliers, two rounders; long: two lefts, multipliers, posts and rounders (4 words more)
 *   out     rows: the pixels' bytes are fields.step apart, channels are neighbours. planes: pixels are neighbours, channels
 *           are fields.step apart
 *   fields  steps, step, zero_point, floor, low: a result is max(clamp(y + zero_point, 0, 255), floor) - floor + low; floor is 0
 *           in `full`
 *
 * The loop over steps is unrolled by UNROLL and entered in the middle, so that any number of steps costs the same.
 */
#include "dsp_asm.h"

/* Clips results; without a floor in `full`. */
.purgem clamp_bytes
.macro clamp_bytes bytes, floor, low
    .if !full
    uqsub8 \bytes, \bytes, \floor
    .endif
    uadd8 \bytes, \bytes, \low
.endm

#define UNROLL 8

#define pairs r12
#define panel lr

#define FLOOR 0                        /* the frame; the first five are loaded at once */
#define LOW 4
#define OUT 8
#define STEP 12
#define PAIRS_END 16
#define PANEL 20
#define ENTRY 24                       /* where the unrolled loop is entered */
#define PANEL_END 28
#define ZERO_POINT 32
#define FRAME 44
#define ARGUMENT (FRAME + SAVED)       /* the fifth */

/* `step` for each row in use: its sums for A and B, its number. */
.macro for_rows step
    \step r0, r4, 0
    .if rows > 1
    \step r1, r5, 1
    .endif
    .if rows > 2
    \step r2, r6, 2
    .endif
    .if rows > 3
    \step r3, r7, 3
    .endif
.endm

/* For `bytes`: from the last row, since row 0 holds the biases at first. */
.macro start_rows
    .if rows > 3
    start_row r3, r7, r11
    .endif
    .if rows > 2
    start_row r2, r6, r10
    .endif
    .if rows > 1
    start_row r1, r5, r9
    .endif
    start_row r0, r4, r8
.endm

.macro start_row a, b, offset
    add \a, r0, \offset
    add \b, r4, \offset
.endm

/* `from_a`, `from_b`: the initial values of the sums. */
.macro multiply_accumulate x, a, b, from_a, from_b
    .ifb \from_a
    smlad \a, \x, r8, \a
    smlad \b, \x, r9, \b
    .else
    smlad \a, \x, r8, \from_a
    smlad \b, \x, r9, \from_b
    .endif
.endm

/* All instructions have four bytes, because the entry is computed. In the first step of `ab` the last row's sums, `from`, are the biases. */
.macro one_step from_a, from_b
    ldr r9, [pairs], #4
    .if rows > 1
    ldrd r10, r11, [panel], #8
    .else
    ldr r10, [panel], #4
    .endif
    sxtb16 r8, r9
    .if bytes
    sxtb16 r9, r9, ror #8
    .endif
    multiply_accumulate r10, r0, r4, \from_a, \from_b
    .if rows > 1
    multiply_accumulate r11, r1, r5, \from_a, \from_b
    .endif
    .if rows == 3
    ldr r10, [panel], #4
    .elseif rows == 4
    ldrd r10, r11, [panel], #8
    .endif
    .if rows > 2
    multiply_accumulate r10, r2, r6, \from_a, \from_b
    .endif
    .if rows > 3
    multiply_accumulate r11, r3, r7, \from_a, \from_b
    .endif
.endm

/* Three pixels: two steps at a time, because there are registers for one more load. First the words are factors, then their low bytes. */
.macro three_pixels w, a0=r0, a1=r1, b0=r4, b1=r5
    ldm panel!, {r3, r10, r11}
    smlad r4, r3, \w, \b0
    smlad r5, r10, \w, \b1
    smlad r6, r11, \w, r6
    sxtb16 \w, \w
    smlad r0, r3, \w, \a0
    smlad r1, r10, \w, \a1
    smlad r2, r11, \w, r2
.endm

.macro two_steps first:vararg
    ldrd r8, r9, [pairs], #8
    three_pixels r8, \first
    three_pixels r9
.endm

/* Loads the biases into the last row's sums, and copies them to the sums that start with the bias. */
.macro first_steps
    .if paired
    ldrd r2, r6, [pairs], #8
    two_steps r2, r2, r6, r6
    .elseif rows == 4
    ldrd r3, r7, [pairs], #8
    one_step r3, r7
    .elseif rows == 2
    ldrd r1, r5, [pairs], #8
    one_step r1, r5
    .else
    ldrd r0, r4, [pairs], #8
    one_step r0, r4
    .endif
.endm

/* The scales of A and B are in pairs of registers. */
.macro multiply_row a, b, row
    high_multiply \a, \b, r8, r9
.endm

/* Without rounding, as the first of layers that round once: (2 * a * m) >> 32. */
.macro multiply_row_down a, b, row
    smmla \a, \a, r8, \a
    smmla \b, \b, r9, \b
.endm

.macro round_row a, b, row
    round_sums \a, \b, r10, r11, panel
.endm

/* The long rounding. Its results are saturated to 16 bits, which the narrowing reads. */
.macro shift_row a, b, row
    shift_left \a, \b, r8, r9
.endm

.macro lower_row a, b, row
    shift_and_lower \a, \b, r10, r11
.endm

.macro round_long_row a, b, row
    round_long \a, \b, r10, r11, panel
    ssat \a, #16, \a
    ssat \b, #16, \b
.endm

.macro write_plane c0, to:vararg
    .if rows == 4
    str \c0, [\to]
    .elseif rows == 1
    strb \c0, [\to]
    .else
    strh \c0, [\to]
    .endif
.endm

/* Stores both channels of a pixel, which are neighbours. */
.macro write_pixel a, b, row
    narrow_two r8, r9, \a, \b
    strh \a, [r10]
    .if \row == 0
    add \b, r10, #2
    str \b, [sp, #OUT]
    .endif
    add r10, r10, r11
.endm

.macro gemm name, row_count, is_bytes, is_planes, is_long, is_once=0, is_full=0
    .set full, \is_full
    .set rows, \row_count
    .set bytes, \is_bytes
    .set paired, rows == 3 && !bytes   /* two steps per iteration */
    enter \name, FRAME
    str r0, [sp, #PANEL]
    str r2, [sp, #OUT]
    ldr r4, [sp, #ARGUMENT]
    ldm r4, {r5-r9}
    str r6, [sp, #STEP]
    str r7, [sp, #ZERO_POINT]
    strd r8, r9, [sp, #FLOOR]          /* and LOW */
    add r4, r5, #6 + 4 * \is_long
    mul r4, r4, r3
    add r4, r1, r4, lsl #2
    str r4, [sp, #PAIRS_END]
    mov r6, #rows * 4
    mla r4, r5, r6, r0
    str r4, [sp, #PANEL_END]
    .if paired
    .set turn, UNROLL / 2
    lsr r5, r5, #1
    .else
    .set turn, UNROLL
    .endif
    .if bytes
    rsb r5, r5, #0                     /* steps that the first iteration skips */
    and r5, r5, #turn - 1
    .else                              /* steps (pairs of steps) after the first; the first iteration skips some or all of them */
    subs r5, r5, #1
    ite eq
    moveq r5, #turn
    rsbne r5, r5, #0
    it ne
    andne r5, r5, #turn - 1
    .endif
    entry_point r5, r5, turn, .Lloop_\@, .Lloop_end_\@, r6, r7
    str r5, [sp, #ENTRY]
    mov pairs, r1

.Lpair_\@:
    .if bytes
    ldrd r0, r4, [pairs], #8
    ldr panel, [sp, #PANEL_END]
    .if rows == 1
    ldr r8, [panel]
    .elseif rows == 2
    ldrd r8, r9, [panel]
    .elseif rows == 3
    ldm panel, {r8-r10}
    .else
    ldm panel, {r8-r11}
    .endif
    start_rows
    ldr panel, [sp, #PANEL]
    .else
    ldr panel, [sp, #PANEL]
    first_steps
    .if paired
    ldr r7, [sp, #PANEL_END]
    .endif
    .endif
    ldr pc, [sp, #ENTRY]
    .balign 4
.Lloop_\@:
    .rept turn
    .if paired
    two_steps
    .else
    one_step
    .endif
    .endr
.Lloop_end_\@:
    .if paired
    cmp panel, r7
    .else
    ldr r8, [sp, #PANEL_END]
    cmp panel, r8
    .endif
    bne .Lloop_\@

    .if !bytes
    for_rows split_sums
    .endif
    .if \is_long
    ldrd r8, r9, [pairs], #8
    for_rows shift_row
    ldm pairs!, {r8-r11}
    for_rows multiply_row
    for_rows lower_row
    ldrd r10, r11, [pairs], #8
    ldr panel, [sp, #ZERO_POINT]
    for_rows round_long_row
    .else
    ldm pairs!, {r8-r11}
    .if \is_once
    for_rows multiply_row_down
    .else
    for_rows multiply_row
    .endif
    ldr panel, [sp, #ZERO_POINT]
    for_rows round_row
    .endif
    ldm sp, {r8-r11, panel}            /* floor, low, out, step, end of the pairs */
    .if \is_planes
    narrow rows, r8, r9, r0, r1, r2, r3
    narrow rows, r8, r9, r4, r5, r6, r7
    write_plane r0, r10
    write_plane r4, r10, r11
    .if rows == 3
    add r8, r10, r11
    lsr r0, r0, #16
    lsr r4, r4, #16
    strb r0, [r10, #2]
    strb r4, [r8, #2]
    .endif
    add r10, r10, r11, lsl #1
    str r10, [sp, #OUT]
    .else
    for_rows write_pixel
    .endif
    cmp pairs, panel
    bne .Lpair_\@

    leave FRAME
    end_function \name
.endm

.irp r, 1, 2, 3, 4
gemm arm_dsp_gemm_ab_r\r\()_rows, \r, 0, 0, 0
gemm arm_dsp_gemm_ab_r\r\()_planes, \r, 0, 1, 0
gemm arm_dsp_gemm_bytes_r\r\()_rows, \r, 1, 0, 0
gemm arm_dsp_gemm_bytes_r\r\()_planes, \r, 1, 1, 0
gemm arm_dsp_gemm_ab_r\r\()_rows_long, \r, 0, 0, 1
gemm arm_dsp_gemm_ab_r\r\()_planes_long, \r, 0, 1, 1
gemm arm_dsp_gemm_bytes_r\r\()_rows_long, \r, 1, 0, 1
gemm arm_dsp_gemm_bytes_r\r\()_planes_long, \r, 1, 1, 1
gemm arm_dsp_gemm_ab_r\r\()_rows_once, \r, 0, 0, 0, 1
gemm arm_dsp_gemm_ab_r\r\()_planes_once, \r, 0, 1, 0, 1
gemm arm_dsp_gemm_bytes_r\r\()_rows_once, \r, 1, 0, 0, 1
gemm arm_dsp_gemm_bytes_r\r\()_planes_once, \r, 1, 1, 0, 1
gemm arm_dsp_gemm_ab_r\r\()_rows_full, \r, 0, 0, 0, 0, 1
gemm arm_dsp_gemm_ab_r\r\()_planes_full, \r, 0, 1, 0, 0, 1
.endr
