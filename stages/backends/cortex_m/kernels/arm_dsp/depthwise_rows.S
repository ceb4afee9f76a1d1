/* Depthwise convolution of a plane by windows of five or seven columns, stride 1 along the rows, requantized to 8 bits. Thumb-2 with
 * the DSP extension.
 *
 *   void arm_dsp_depthwise_rows<5|7>[_long](const int16_t *plane, const int32_t *channel, void *out, const int32_t *fields);
 *
 *   plane    aligned to 4 bytes, including padding. The elements of a row: the outputs of a row, rounded up to an even number,
 *            plus <5|7> - 1
 *   channel  for each row of the window (up to seven) its taps as pairs of int16: w0 w1, w2 w3, ..., then w1 w2, w3 w4, ...; bias,
 *            scale (rounding.py): multiplier, rounder; long: left, multiplier, post, rounder
 *   fields   the C structure arm_dsp_depthwise
 *
 * Two neighbouring outputs z0, z1 and one row of taps: with five taps 9 instructions for 10 multiply-accumulates, with seven 12
 * for 14.
 *
 *   x0 x1 | x2 x3 | x4 x5      z0 += x0 w0 + x1 w1   smlad      z1 += x1 w0            smlatb
 *                              z0 += x2 w2 + x3 w3   smlad      z1 += x2 w1 + x3 w2    smlad
 *                              z0 += x4 w4           smlabt     z1 += x4 w3 + x5 w4    smlad
 */
#include "dsp_asm.h"

#define MOST 7                         /* rows of a window */

#define x r0
#define taps r1
#define z0 r11
#define z1 r12
#define pitch lr

#define BIAS 0                         /* the frame */
#define SCALE 4                        /* up to four words */
#define X 20                           /* of the pair; X and OUT are stored by pairs */
#define OUT 24
#define X_ROW 28                       /* of the row */
#define OUT_ROW 32
#define TAPS 36
#define ENTRY 40
#define COLUMNS_LEFT 44
#define COLUMNS 48
#define ROWS 52
#define ROW_STEP 56                    /* bytes, between rows of outputs */
#define Y_ROW 60
#define Y_COLUMN 64
#define ZERO_POINT 68
#define FLOOR 72
#define LOW 76
#define FRAME 84                       /* with nine saved registers: a multiple of 8 */

/* All instructions have four bytes, because the entry is computed. */
.macro row5
    ldm.w taps!, {r2-r5}
    ldm.w x, {r8-r10}
    add.w x, x, pitch
    smlad z0, r8, r2, z0
    smlad z0, r9, r3, z0
    smlabt z0, r10, r5, z0
    smlatb z1, r8, r2, z1
    smlad z1, r9, r4, z1
    smlad z1, r10, r5, z1
.endm

.macro row7
    ldm.w taps!, {r2-r7}
    ldrd r8, r9, [x]
    smlad z0, r8, r2, z0
    smlad z0, r9, r3, z0
    smlatb z1, r8, r2, z1
    smlad z1, r9, r5, z1
    ldrd r8, r9, [x, #8]
    add.w x, x, pitch
    smlad z0, r8, r4, z0
    smlabt z0, r9, r7, z0
    smlad z1, r8, r6, z1
    smlad z1, r9, r7, z1
.endm

.macro short_rounding
    ldrd r2, r3, [sp, #SCALE]
    high_multiply z0, z1, r2, r2
    ldr r4, [sp, #ZERO_POINT]
    round_sums z0, z1, r3, r3, r4
    pkhbt z0, z0, z1, lsl #16
    usat16 z0, #8, z0
.endm

.macro long_rounding
    ldrd r2, r3, [sp, #SCALE]
    shift_left z0, z1, r2, r2
    high_multiply z0, z1, r3, r3
    ldrd r2, r3, [sp, #SCALE + 8]
    shift_and_lower z0, z1, r2, r2
    ldr r4, [sp, #ZERO_POINT]
    round_long z0, z1, r3, r3, r4
    usat z0, #8, z0                    /* 32-bit results: usat16 reads 16 bits only */
    usat z1, #8, z1
    pkhbt z0, z0, z1, lsl #16
.endm

.macro depthwise columns, is_long, suffix
    enter arm_dsp_depthwise_rows\columns\suffix, FRAME
    str r0, [sp, #X_ROW]
    str r2, [sp, #OUT_ROW]
    str r1, [sp, #TAPS]
    ldm r3!, {r4-r10}                  /* rows, columns, kernel_y, pairs, row_step, column_step, tap_step */
    str r4, [sp, #ROWS]
    str r5, [sp, #COLUMNS]
    lsl r8, r8, #1
    str r8, [sp, #ROW_STEP]
    lsl pitch, r10, #1
    mov r7, #4 * (\columns - 1)        /* bytes of a row's taps */
    mla r1, r7, r6, r1
    rsb r6, r6, #MOST
    entry_point r6, r6, MOST, .Lfirst_\@, .Lsums_\@, r4, r5
    str r6, [sp, #ENTRY]
    ldm r3, {r4-r8}
    strd r4, r5, [sp, #Y_ROW]          /* and Y_COLUMN */
    strd r6, r7, [sp, #ZERO_POINT]     /* and FLOOR */
    str r8, [sp, #LOW]
    .if \is_long
    ldm r1, {r4-r8}
    strd r7, r8, [sp, #SCALE + 8]
    .else
    ldm r1, {r4-r6}
    .endif
    str r4, [sp, #BIAS]
    strd r5, r6, [sp, #SCALE]

.Lrow_\@:
    ldr x, [sp, #X_ROW]
    ldr r3, [sp, #OUT_ROW]
    ldr r2, [sp, #COLUMNS]
    strd x, r3, [sp, #X]
.Lpair_\@:
    str r2, [sp, #COLUMNS_LEFT]
    ldr z0, [sp, #BIAS]
    mov z1, z0
    ldr taps, [sp, #TAPS]
    ldr pc, [sp, #ENTRY]
    .balign 4
.Lfirst_\@:
    .rept MOST
    row\columns
    .endr
.Lsums_\@:
    .if \is_long
    long_rounding
    .else
    short_rounding
    .endif
    ldrd r2, r3, [sp, #FLOOR]
    clamp_bytes z0, r2, r3
    ldrd x, r2, [sp, #X]
    ldr r3, [sp, #Y_COLUMN]
    ldr r4, [sp, #COLUMNS_LEFT]
    strb z0, [r2]
    subs r4, r4, #2
    blo.w .Lnext_\@                    /* an odd number: there is no second output */
    lsr z0, z0, #16
    strb z0, [r2, r3]
    add r3, r2, r3, lsl #1
    add x, x, #4
    strd x, r3, [sp, #X]
    mov r2, r4
    bne.w .Lpair_\@
.Lnext_\@:
    ldr r2, [sp, #X_ROW]
    ldr r3, [sp, #ROW_STEP]
    ldr r4, [sp, #OUT_ROW]
    ldr r5, [sp, #Y_ROW]
    ldr r6, [sp, #ROWS]
    add r2, r2, r3
    str r2, [sp, #X_ROW]
    add r4, r4, r5
    str r4, [sp, #OUT_ROW]
    subs r6, r6, #1
    str r6, [sp, #ROWS]
    bne.w .Lrow_\@
    leave FRAME
    end_function arm_dsp_depthwise_rows\columns\suffix
.endm

depthwise 5, 0
depthwise 7, 0
depthwise 5, 1, _long
depthwise 7, 1, _long
