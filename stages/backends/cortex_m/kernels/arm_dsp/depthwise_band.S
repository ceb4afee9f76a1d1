/* Depthwise 3x3 of stride 1 on one to three rows of outputs of an NHWC image of int8, requantized to 8 bits. Thumb-2 with the DSP
 * extension.
 *
 *   void arm_dsp_depthwise_band_r<1|2|3>[_clamped][_long](const int8_t *x, const int32_t *channels, int8_t *out, int32_t *columns,
 *                                                        const int32_t *fields);
 *
 *   x         two rows more than outputs; beside the image is one column of padding
 *   channels  for each channel three words of taps, bytes w0, w1, w1, w2 of a column of the window; bias, scale (rounding.py):
 *             multiplier, rounder; long: left, multiplier, post, rounder
 *   out       may be x: a channel is packed before its results
 *   columns   [width + 2][2, for three rows 3] words
 *   fields    the C structure arm_dsp_depthwise_band: width, step (bytes between pixels), row (bytes between rows), channels,
 *             zero_point, floor, low (as in gemm.S), pad (the zero point in both halves)
 *
 * A channel is packed column by column: pairs of rows are halves of a word.
 *
 *   row 0 | row 1     P     z0 += row0 w0 + row1 w1   smlad    z0 += row2 w2            smlabt
 *   row 2 | row 3     Q     z1 += row1 w0             smlatb   z1 += row2 w1 + row3 w2  smlad
 *   row 4             R     z2 += row2 w0 + row3 w1   smlad    z2 += row4 w2            smlabt
 *
 * Two instructions for three multiply-accumulates. r3-r8: for each column of the window w0, w1 and w1, w2 as halves.
 */
#include "dsp_asm.h"

#define X 0                            /* the frame; the first six are loaded at once */
#define ROW_3 4                        /* three rows */
#define ROW 8
#define STEP 12
#define INSIDE 16                      /* the first column of the image */
#define WIDTH 20
#define COLUMNS 24
#define OUT 28
#define CHANNEL 32
#define LEFT 36                        /* channels */
#define BIAS 40
#define SCALE 44
#define SCALE_END 52
#define ZERO_POINT 60
#define COLUMNS_END 64
#define FLOOR 68
#define LOW 72
#define FRAME 76                       /* with nine saved registers: a multiple of 8 */
#define ARGUMENT (FRAME + SAVED)       /* the fifth */

.macro for_sums step
    \step r9
    .if rows > 1
    \step r10
    .endif
    .if rows > 2
    \step r11
    .endif
.endm

/* A column of a channel. r0 x, r1 three rows, r2 a row, r3 a pixel, r4 the packed column. */
.macro pack_column
    ldrsb r6, [r0]
    ldrsb r7, [r0, r2]
    ldrsb r8, [r0, r2, lsl #1]
    .if rows > 1
    ldrsb r9, [r0, r1]
    .endif
    .if rows > 2
    ldrsb r10, [r0, r2, lsl #2]
    .endif
    add r0, r0, r3
    pkhbt r6, r6, r7, lsl #16
    .if rows == 1
    strd r6, r8, [r4], #8
    .else
    pkhbt r7, r8, r9, lsl #16
    .if rows == 2
    strd r6, r7, [r4], #8
    .else
    stm r4!, {r6, r7, r10}
    .endif
    .endif
.endm

/* A column of windows. `from`: the register with the bias, for the first column. */
.macro column first, second, from0=r9, from1=r10
    .if rows < 3
    ldrd r2, r12, [r0], #8
    .else
    ldm r0!, {r2, r12, lr}
    .endif
    smlad r9, r2, \first, \from0
    .if rows > 1
    smlatb r10, r2, \first, \from1
    .endif
    .if rows > 2
    smlad r11, r12, \first, r11
    .endif
    smlabt r9, r12, \second, r9
    .if rows > 1
    smlad r10, r12, \second, r10
    .endif
    .if rows > 2
    smlabt r11, lr, \second, r11
    .endif
.endm

.macro left_sum z
    lsl \z, \z, r2
.endm

.macro multiply_sum z
    smmlar \z, \z, r12, \z
.endm

.macro lower_sum z
    lsl \z, \z, r2
    add \z, \z, \z, asr #31
.endm

.macro round_sum z
    smmlar \z, \z, r2, lr
.endm

.macro round_long_sum z
    smmlsr \z, \z, r12, lr
.endm

.macro clip_sum z
    usat \z, #8, \z
    clamp_bytes \z, r2, r12
.endm

.macro saturate_sum z
    ssat \z, #8, \z
.endm

.macro requantize_sums
    ldr lr, [sp, #ZERO_POINT]
    ldrd r2, r12, [sp, #SCALE]
    .if long
    for_sums left_sum
    for_sums multiply_sum
    ldrd r2, r12, [sp, #SCALE_END]
    for_sums lower_sum
    for_sums round_long_sum
    .else
    for_sums multiply_sum
    for_sums round_sum
    .endif
    .if clamped
    ldrd r2, r12, [sp, #FLOOR]
    for_sums clip_sum
    .else
    for_sums saturate_sum
    .endif
.endm

.macro depthwise_band name, count, is_clamped, is_long
    .set rows, \count
    .set words, 2 + rows / 3           /* of a column */
    .set clamped, \is_clamped
    .set long, \is_long
    enter \name, FRAME
    ldr r12, [sp, #ARGUMENT]
    ldm r12, {r4-r11}                  /* the fields */
    str r0, [sp, #X]
    add r0, r6, r6, lsl #1
    str r0, [sp, #ROW_3]
    strd r6, r5, [sp, #ROW]            /* and STEP */
    add r0, r3, #4 * words
    strd r0, r4, [sp, #INSIDE]         /* and WIDTH */
    strd r3, r2, [sp, #COLUMNS]        /* and OUT */
    strd r1, r7, [sp, #CHANNEL]        /* and LEFT */
    mov r0, #4 * words
    mla r0, r4, r0, r3                 /* the last column of the image */
    strd r8, r0, [sp, #ZERO_POINT]     /* and COLUMNS_END */
    strd r9, r10, [sp, #FLOOR]         /* and LOW */
    .irp at, 0, 4, 8
    .if \at < 4 * words
    str r11, [r3, #\at]
    str r11, [r0, #4 * words + \at]
    .endif
    .endr

.Lchannel_\@:
    ldm sp, {r0-r5}
.Lpack_\@:
    pack_column
    subs r5, r5, #1
    bne .Lpack_\@
    ldr r1, [sp, #CHANNEL]
    .if long
    ldm r1!, {r3, r5, r7, r9-r12, lr}
    strd r12, lr, [sp, #SCALE_END]
    strd r10, r11, [sp, #SCALE]
    .else
    ldm r1!, {r3, r5, r7, r9-r11}
    strd r11, r10, [sp, #SCALE]        /* rounder, multiplier */
    .endif
    str r1, [sp, #CHANNEL]
    str r9, [sp, #BIAS]
    sxtb16 r4, r3, ror #8
    sxtb16 r3, r3
    sxtb16 r6, r5, ror #8
    sxtb16 r5, r5
    sxtb16 r8, r7, ror #8
    sxtb16 r7, r7
    ldrd r0, r1, [sp, #COLUMNS]        /* and OUT */
.Lcolumn_\@:
    .if rows == 1
    ldr r9, [sp, #BIAS]
    column r3, r4
    .elseif rows == 2
    ldr r10, [sp, #BIAS]
    column r3, r4, r10
    .else
    ldr r11, [sp, #BIAS]
    column r3, r4, r11, r11
    .endif
    column r5, r6
    column r7, r8
    sub r0, r0, #8 * words
    requantize_sums
    ldrd r2, r12, [sp, #ROW]           /* and STEP */
    strb r9, [r1]
    .if rows > 1
    strb r10, [r1, r2]
    .endif
    .if rows > 2
    strb r11, [r1, r2, lsl #1]
    .endif
    add r1, r1, r12
    ldr lr, [sp, #COLUMNS_END]
    cmp r0, lr
    bne .Lcolumn_\@
    ldr r0, [sp, #X]
    ldr r1, [sp, #OUT]
    ldr r3, [sp, #LEFT]
    add r0, r0, #1
    str r0, [sp, #X]
    add r1, r1, #1
    str r1, [sp, #OUT]
    subs r3, r3, #1
    str r3, [sp, #LEFT]
    bne.w .Lchannel_\@

    leave FRAME
    end_function \name
.endm

.irp r, 1, 2, 3
depthwise_band arm_dsp_depthwise_band_r\r, \r, 0, 0
depthwise_band arm_dsp_depthwise_band_r\r\()_long, \r, 0, 1
depthwise_band arm_dsp_depthwise_band_r\r\()_clamped, \r, 1, 0
depthwise_band arm_dsp_depthwise_band_r\r\()_clamped_long, \r, 1, 1
.endr
