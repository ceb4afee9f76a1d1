/* Depthwise 3x3 on one plane of int16, stride 1 or 2, requantized to 8 bits. Thumb-2 with the DSP extension.
 *
 *   void arm_dsp_depthwise3x3_s<1|2>_<near|rows|apart>[_clamped|_wide][_long](const int16_t *plane, const int32_t *channel,
 *                                                                            void *out, const int32_t *fields);
 *   void arm_dsp_depthwise3x3_bytes_s<1|2>_<rows|apart>[_clamped][_long](const int8_t *x, const int32_t *channel, void *out,
 *                                                                const int32_t *fields);
 *
 *   plane    rows of (pairs + odd) * 2 * stride + 2 elements, including padding, aligned to 4 bytes
 *   channel  three words of taps (bytes w0, w1, w2, 0 of a row), bias, scale (rounding.py): multiplier, rounder; long: left,
 *            multiplier, post, rounder. wide: for taps that do not fit int8, six words of taps instead: r3-r8 as shown below
 *   out      near: outputs are consecutive bytes. rows: those of a row are, rows are fields.row bytes apart. apart: outputs of
 *            a row are fields.column bytes apart as well
 *   fields   rows, pairs of a row, odd, jump, column, row, zero_point, floor, low (as in gemm.S). A row has `pairs` pairs of
 *            outputs, and one more output if odd. jump: bytes from the end of a row of the plane to the start of the row for the
 *            next row of outputs
 *
 * Two neighbouring outputs z0, z1, one row of taps. Registers hold pairs of elements:
 *
 *   stride 1    x0 x1 | x2 x3      z0 += x0 w0 + x1 w1   smlad            z0 += x2 w2            smlabt
 *                                  z1 += x1 w0           smlatb           z1 += x2 w1 + x3 w2    smlad
 *   stride 2    x0 x1 | x2 x3 | x4 z0 += x0 w0 + x1 w1   smlad            z0 += x2 w2            smlabb, smlabt
 *                                  z1 += x2 w0 + x3 w1   smlad            z1 += x4 w2            smlabb, smlabt
 *
 * Five (six) instructions for six multiply-accumulates. r0-r2 are the three rows, r3-r8 the taps:
 *
 *   stride 1    r3, r5, r7: w0, w1 of each row    r4, r6, r8: w1, w2 of each row
 *   stride 2    r3, r5, r7: w0, w1 of each row    r4: w2 of rows 0 and 1    r6: w2 of row 2
 *
 * Bytes: the rows of an int8 image as they are, without a plane, which takes less time for few rows of outputs. Padding is one byte
 * on the right, and with stride 1 one on the left. A row has `pairs` pairs before its last one (stride 1: and after its first); if
 * `odd`, the last begins one output earlier. fields x_row: bytes between rows of x; pad: the byte of padding. r3, r5, r7: w0, w2 of
 * each row, r4, r6, r8: w1 of each row. Four bytes, seven instructions, and nine:
 *
 *   stride 1    x0 x2 | x1 x3      z0 += x0 w0 + x2 w2   smlad            z0 += x1 w1            smlabb
 *                                  z1 += x1 w0 + x3 w2   smlad            z1 += x2 w1            smlatb
 *   stride 2    x0 x2 | x1 x3      z0 += x0 w0 + x2 w2   smlad            z0 += x1 w1            smlabb
 *               x4                 z1 += x2 w0           smlatb           z1 += x3 w1, x4 w2     smlatb, smlabt
 */
#include "dsp_asm.h"

#define x01 r9
#define x23 r10
#define z0 r11
#define z1 r12
#define out lr

#define BIAS 0                         /* the frame: twice, for both outputs */
#define SCALE 8                        /* its first two words */
#define FLOOR 16
#define LOW 20
#define ZERO_POINT 24
#define COLUMN 28
#define ROW 32
#define OUT_ROW 36
#define ROWS 40
#define ODD 44
#define JUMP 48
#define PAIR_BYTES 52
#define ROW_END 56                     /* r0 after the pairs of the row */
#define ENTRY 60
#define SCALE_END 64                   /* long: the last two words of the scale */
#define FRAME 68                       /* with nine saved registers: a multiple of 8; long: 8 more */

/* Taps w0, w1, w2 of a row: (w0, w1) into a, (w1, w2) into b. */
.macro taps_s1 a, b
    sxtb16 z1, \a, ror #8              /* w1, 0 */
    sxtb16 \a, \a                      /* w0, w2 */
    pkhbt \b, z1, \a
    pkhbt \a, \a, z1, lsl #16
.endm

.macro row_s1 x, a, b
    ldrd x01, x23, [\x], #4
    smlad z0, x01, \a, z0
    smlatb z1, x01, \a, z1
    smlabt z0, x23, \b, z0
    smlad z1, x23, \b, z1
.endm

.macro row_s2 x, a, w2, half
    ldrd x01, x23, [\x], #8
    smlad z0, x01, \a, z0
    smlab\half z0, x23, \w2, z0
    ldr x01, [\x]
    smlad z1, x23, \a, z1
    smlab\half z1, x01, \w2, z1
.endm

.macro sums
    ldrd z0, z1, [sp, #BIAS]
    .if stride == 1
    row_s1 r0, r3, r4
    row_s1 r1, r5, r6
    row_s1 r2, r7, r8
    .else
    row_s2 r0, r3, r4, b
    row_s2 r1, r5, r4, t
    row_s2 r2, r7, r6, b
    .endif
.endm

.macro short_rounding
    ldrd x01, x23, [sp, #SCALE]
    high_multiply z0, z1, x01, x01
    ldr x01, [sp, #ZERO_POINT]
    round_sums z0, z1, x23, x23, x01
.endm

.macro long_rounding
    ldrd x01, x23, [sp, #SCALE]
    shift_left z0, z1, x01, x01
    high_multiply z0, z1, x23, x23
    ldrd x01, x23, [sp, #SCALE_END]
    shift_and_lower z0, z1, x01, x01
    ldr x01, [sp, #ZERO_POINT]
    round_long z0, z1, x23, x23, x01
.endm

.macro requantize
    .if long
    long_rounding
    .else
    short_rounding
    .endif
    .if clamped
    .if long                           /* 32-bit results: usat16 reads 16 bits only */
    usat z0, #8, z0
    usat z1, #8, z1
    pkhbt z0, z0, z1, lsl #16
    .else
    pkhbt z0, z0, z1, lsl #16
    usat16 z0, #8, z0
    .endif
    ldrd x01, x23, [sp, #FLOOR]
    clamp_bytes z0, x01, x23
    lsr z1, z0, #16
    .else
    ssat z0, #8, z0
    ssat z1, #8, z1
    .endif
.endm

/* A pair of outputs. All instructions have four bytes, because the entry is computed. */
.macro pair
    sums
    store_pair
.endm

.macro store_pair
    requantize
    .if near
    strb.w z0, [out], #1
    strb.w z1, [out], #1
    .else
    ldr.w x01, [sp, #COLUMN]
    strb.w z0, [out]
    strb.w z1, [out, x01]
    add.w out, out, x01, lsl #1
    .endif
.endm

/* Bias and scale of the channel from r1 into the frame. */
.macro result_constants
    .if long
    ldm r1, {r1, r9-r12}
    strd r1, r1, [sp, #BIAS]
    strd r9, r10, [sp, #SCALE]
    strd r11, r12, [sp, #SCALE_END]
    .else
    ldm r1, {r9-r11}
    strd r9, r9, [sp, #BIAS]
    strd r10, r11, [sp, #SCALE]
    .endif
.endm

/* Taps of a row: (w0, w1) into a; w2 stays in the upper half of e. */
.macro taps_s2 a, e
    sxtb16 z0, \a, ror #8
    sxtb16 \e, \a
    pkhbt \a, \e, z0, lsl #16
.endm

.macro depthwise name, step, is_near, has_rows, is_clamped, is_long, is_wide
    .set stride, \step
    .set long, \is_long
    .set frame, FRAME + 8 * long
    .set near, \is_near
    .set clamped, \is_clamped
    enter \name, frame
    mov out, r2
    ldm r3, {r4-r12}                   /* the fields */
    strd r4, r6, [sp, #ROWS]
    str r7, [sp, #JUMP]
    strd r8, r9, [sp, #COLUMN]
    str r2, [sp, #OUT_ROW]
    str r10, [sp, #ZERO_POINT]
    strd r11, r12, [sp, #FLOOR]
    lsl r4, r5, #1 + stride            /* bytes of a row's pairs */
    str r4, [sp, #PAIR_BYTES]
    add r4, r4, r6, lsl #1 + stride    /* of a row */
    add r4, r4, #4
    and r5, r5, #1                     /* an odd number of pairs begins in the middle of the loop */
    entry_point r5, r5, 1, .Lloop_\@, .Lsecond_\@, r6, r7
    str r5, [sp, #ENTRY]
    mov r2, r4
    .if \is_wide
    ldm r1!, {r3-r8}
    .else
    ldm r1!, {r3, r5, r7}
    .if stride == 1
    taps_s1 r3, r4
    taps_s1 r5, r6
    taps_s1 r7, r8
    .else
    taps_s2 r3, r4
    taps_s2 r5, r6
    pkhtb r4, r6, r4, asr #16          /* w2 of the first two rows */
    taps_s2 r7, r6
    asr r6, r6, #16
    .endif
    .endif
    result_constants
    add r1, r0, r2
    add r2, r1, r2

.Lrow_\@:
    ldr x01, [sp, #PAIR_BYTES]
    adds x23, x01, r0
    str x23, [sp, #ROW_END]
    cmp x01, #0
    beq.w .Llast_\@
    ldr pc, [sp, #ENTRY]
    .balign 4
.Lloop_\@:
    pair
.Lsecond_\@:
    pair
    ldr x01, [sp, #ROW_END]
    cmp r0, x01
    bne .Lloop_\@

.Llast_\@:
    ldrd x01, x23, [sp, #ODD]          /* and JUMP */
    cmp x01, #0
    beq.w .Lnext_\@
    sums
    requantize
    strb z0, [out], #1
    ldr x23, [sp, #JUMP]
.Lnext_\@:
    add r0, r0, x23
    add r1, r1, x23
    add r2, r2, x23
    .if \has_rows
    ldrd x23, out, [sp, #ROW]          /* and OUT_ROW */
    add out, out, x23
    str out, [sp, #OUT_ROW]
    .endif
    ldr x01, [sp, #ROWS]
    subs x01, x01, #1
    str x01, [sp, #ROWS]
    bne.w .Lrow_\@

    leave frame
    end_function \name
.endm

#define PAD 72                         /* after the last words of a long scale */
#define BYTES_FRAME 76

.macro row_bytes x, a, b, place
    .if stride == 2
    ldr.w x01, [\x], #4
    .else
    .ifc \place, first
    ldr.w x01, [\x], #1
    ldr.w x23, [sp, #PAD]
    orr.w x01, x23, x01, lsl #8
    .endif
    .ifc \place, inner
    ldr.w x01, [\x], #2
    .endif
    .ifc \place, last
    ldr.w x01, [\x, #-1]
    ldr.w x23, [sp, #PAD]
    lsr.w x01, x01, #8
    orr.w x01, x01, x23, lsl #24
    .endif
    .endif
    sxtb16 x23, x01, ror #8
    sxtb16 x01, x01
    smlad z0, x01, \a, z0
    smlabb z0, x23, \b, z0
    .if stride == 2
    smlatb z1, x01, \a, z1
    .ifc \place, last
    ldrsb.w x01, [sp, #PAD]
    .else
    ldrsb.w x01, [\x]
    .endif
    smlatb z1, x23, \b, z1
    smlabt z1, x01, \a, z1
    .else
    smlad z1, x23, \a, z1
    smlatb z1, x01, \b, z1
    .endif
.endm

/* A pair of outputs; all instructions have four bytes. */
.macro pair_of_bytes place
    ldrd z0, z1, [sp, #BIAS]
    row_bytes r0, r3, r4, \place
    row_bytes r1, r5, r6, \place
    row_bytes r2, r7, r8, \place
    store_pair
.endm

.macro depthwise_bytes name, step, is_near, is_clamped, is_long
    .set stride, \step
    .set long, \is_long
    .set frame, BYTES_FRAME
    .set near, \is_near
    .set clamped, \is_clamped
    enter \name, frame
    mov out, r2
    ldm r3!, {r4-r12}                  /* the fields as above */
    strd r4, r6, [sp, #ROWS]
    str r7, [sp, #JUMP]
    strd r8, r9, [sp, #COLUMN]
    str r2, [sp, #OUT_ROW]
    str r10, [sp, #ZERO_POINT]
    strd r11, r12, [sp, #FLOOR]
    ldrd r2, r4, [r3]                  /* x_row, pad */
    str r4, [sp, #PAD]
    lsl r4, r5, #stride
    str r4, [sp, #PAIR_BYTES]
    and r5, r5, #1                     /* an odd number of pairs begins in the middle of the loop */
    entry_point r5, r5, 1, .Lloop_\@, .Lsecond_\@, r6, r7
    str r5, [sp, #ENTRY]
    ldm r1!, {r3, r5, r7}
    sxtb16 r4, r3, ror #8
    sxtb16 r3, r3
    sxtb16 r6, r5, ror #8
    sxtb16 r5, r5
    sxtb16 r8, r7, ror #8
    sxtb16 r7, r7
    result_constants
    add r1, r0, r2
    add r2, r1, r2

.Lrow_\@:
    .if stride == 1
    pair_of_bytes first
    .endif
    ldr x01, [sp, #PAIR_BYTES]
    adds x23, x01, r0
    str x23, [sp, #ROW_END]
    cmp x01, #0
    beq.w .Llast_\@
    ldr pc, [sp, #ENTRY]
    .balign 4
.Lloop_\@:
    pair_of_bytes inner
.Lsecond_\@:
    pair_of_bytes inner
    ldr x01, [sp, #ROW_END]
    cmp r0, x01
    bne .Lloop_\@

.Llast_\@:
    ldr x01, [sp, #ODD]
    sub r0, r0, x01, lsl #stride - 1
    sub r1, r1, x01, lsl #stride - 1
    sub r2, r2, x01, lsl #stride - 1
    .if near
    sub out, out, x01
    .else
    ldr x23, [sp, #COLUMN]
    mls out, x01, x23, out
    .endif
    pair_of_bytes last
    ldr x23, [sp, #JUMP]
    add r0, r0, x23
    add r1, r1, x23
    add r2, r2, x23
    ldrd x23, out, [sp, #ROW]          /* and OUT_ROW */
    add out, out, x23
    str out, [sp, #OUT_ROW]
    ldr x01, [sp, #ROWS]
    subs x01, x01, #1
    str x01, [sp, #ROWS]
    bne.w .Lrow_\@

    leave frame
    end_function \name
.endm

.macro both_roundings name, step, is_near, has_rows, is_clamped, is_wide
depthwise \name, \step, \is_near, \has_rows, \is_clamped, 0, \is_wide
depthwise \name\()_long, \step, \is_near, \has_rows, \is_clamped, 1, \is_wide
.endm

.macro all_arithmetics name, step, is_near, has_rows
both_roundings \name, \step, \is_near, \has_rows, 0, 0
both_roundings \name\()_clamped, \step, \is_near, \has_rows, 1, 0
both_roundings \name\()_wide, \step, \is_near, \has_rows, 1, 1
.endm

.irp s, 1, 2
all_arithmetics arm_dsp_depthwise3x3_s\s\()_near, \s, 1, 0
all_arithmetics arm_dsp_depthwise3x3_s\s\()_rows, \s, 1, 1
all_arithmetics arm_dsp_depthwise3x3_s\s\()_apart, \s, 0, 1
.endr

.macro bytes_roundings name, step, is_near, is_clamped
depthwise_bytes \name, \step, \is_near, \is_clamped, 0
depthwise_bytes \name\()_long, \step, \is_near, \is_clamped, 1
.endm

.irp s, 1, 2
bytes_roundings arm_dsp_depthwise3x3_bytes_s\s\()_rows, \s, 1, 0
bytes_roundings arm_dsp_depthwise3x3_bytes_s\s\()_rows_clamped, \s, 1, 1
bytes_roundings arm_dsp_depthwise3x3_bytes_s\s\()_apart, \s, 0, 0
bytes_roundings arm_dsp_depthwise3x3_bytes_s\s\()_apart_clamped, \s, 0, 1
.endr
