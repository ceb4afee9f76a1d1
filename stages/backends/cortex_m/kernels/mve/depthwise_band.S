/* Depthwise 3x3 on one to three rows of outputs (stride 2: one or two) of an NHWC image of int8. Armv8.1-M with MVE (integer).
 *
 *   void mve_depthwise_band_r<1|2|3>[_s2][_clipped](const int8_t *x, const int32_t *constants, int8_t *y, const int16_t *places,
 *                                                   int8_t *strips, const int32_t *fields);
 *
 *   x          all rows of the windows; padding only beside them
 *   constants  for each channel nine weights and three zeros, bias, multiplier, rounder (mode exact of rounding.py)
 *   y          may be x: eight channels are copied before their results
 *   places     16 bytes: the numbers of the weights in the order of a strip, 9 for none; then for eight windows at a time the bytes
 *              from y, in the order w0, w4, w1, w5 ...; -1: no output
 *   strips     [8][columns][lines]: for eight channels the bytes of all columns; the vectors after the last windows are read too
 *   fields     the C structure mve_depthwise_band: width (pixels of a row that are read), pixel (channels), windows, pitch (bytes
 *              of a strip), groups (of eight channels), zero_point, low, high, fill (the zero point of x), inside (the byte of the
 *              first pixel in a strip), row (bytes of x); low and high are for _clipped, others saturate
 *
 * A window is one vector: row r of column c begins at byte stride * (lines c + r), and weights in between are zero. So a window takes
 * two instructions, and eight results fill a vector although rows are short. Copying takes 3 for eight bytes.
 */
#include "mve_asm.h"

#define X 0                            /* the frame */
#define INSIDE 4                       /* the first column of the image in the strips */
#define WIDTH 8
#define ROW 12
#define BACK 16                        /* from the last row of a column to the next column */
#define PLACES 20
#define WINDOWS 24
#define PITCH 28
#define STRIPS_END 32
#define STRIPS 36
#define GROUPS 40
#define CONSTANTS 44
#define FRAME 48
#define ARGUMENTS (FRAME + 64 + 36)    /* the fifth; d8-d15 and nine core registers are saved */
#define FIELD_FILL 32
#define FIELD_ROW 40

.macro copy_pixel lines, step
    vldrb.u16 q0, [r0]
    add r0, r0, \step
    vstrb.16 q0, [r1, \lines]
.endm

.macro window sum, number, rows
    vldrb.8 q0, [r1, #((\number / \rows * lines + \number % \rows) * step)]
    vmladav.s8 \sum, q0, q7
.endm

.macro four_windows sum, number, rows
    window r0, \number, \rows
    window r2, (\number + 1), \rows
    window r4, (\number + 2), \rows
    window r6, (\number + 3), \rows
    vmov \sum[2], \sum[0], r0, r4
    vmov \sum[3], \sum[1], r2, r6
.endm

.macro scale_channel sum
    vadd.i32 \sum, \sum, r9
    scale exact, \sum, r10, r11, q0
.endm

    /* Windows from \number on; ends the channel at 6. */
.macro eight_windows number, rows
    four_windows q1, \number, \rows
    four_windows q2, (\number + 4), \rows
    scale_channel q1
    scale_channel q2
    vqmovnb.s32 q1, q1
    vldrw.32 q6, [r3], #16
    vqmovnt.s32 q1, q2
    vqadd.s16 q1, q1, r12
    .if clipped
    vmax.s16 q1, q1, q4
    vmin.s16 q1, q1, q5
    .else
    vqmovnb.s16 q1, q1
    .endif
    vpt.s16 ge, q6, zr
    vstrbt.16 q1, [r8, q6]
    subs r5, r5, #8
    ble.w 6f
.endm

.macro band name, rows, stride, is_clipped
    .set clipped, \is_clipped
    .set step, \stride
    .set lines, (\rows - 1) * step + 3
    function \name
    push {r4-r11, lr}
    vpush {d8-d15}
    sub sp, sp, #FRAME
    str r0, [sp, #X]
    str r1, [sp, #CONSTANTS]
    str r3, [sp, #PLACES]
    mov r8, r2
    ldrd r1, r12, [sp, #ARGUMENTS]     /* and fields */
    ldrd r2, r3, [r12, #FIELD_FILL]    /* and inside */
    ldr r0, [r12, #FIELD_ROW]
    ldm r12, {r4-r7, r9-r12}
    vdup.8 q0, r2
    vdup.16 q4, r11
    vdup.16 q5, r12
    mov r12, r10
    lsl r2, r7, #3
    add r10, r1, r2
    add r3, r3, r1
    strd r3, r4, [sp, #INSIDE]         /* and WIDTH */
    movs r4, #(lines - 1)
    mls r5, r0, r4, r5
    strd r0, r5, [sp, #ROW]            /* and BACK */
    str r6, [sp, #WINDOWS]
    strd r7, r10, [sp, #PITCH]         /* and STRIPS_END */
    strd r1, r9, [sp, #STRIPS]         /* and GROUPS */
    movs r4, #0
    vidup.u16 q3, r4, #1
    vmul.i16 q3, q3, r7
    wlstp.8 lr, r2, 1f
0:  vstrb.8 q0, [r1], #16
    letp lr, 0b

    /* Copies eight channels, column by column. */
1:  ldm sp, {r0-r4}
    add r5, r0, #8
    str r5, [sp, #X]
    movs r5, #1
    vadd.i16 q6, q3, r5
    vadd.i16 q7, q6, r5
    .if lines > 3
    vadd.i16 q1, q7, r5
    .endif
    .if lines > 4
    vadd.i16 q2, q1, r5
    .endif
    dls lr, r2
3:  copy_pixel q3, r3
    copy_pixel q6, r3
    .if lines == 3
    copy_pixel q7, r4
    .else
    copy_pixel q7, r3
    .if lines == 4
    copy_pixel q1, r4
    .else
    copy_pixel q1, r3
    copy_pixel q2, r4
    .endif
    .endif
    adds r1, r1, #lines
    le lr, 3b
    ldr lr, [sp, #CONSTANTS]
    ldr r7, [sp, #STRIPS]

    /* A channel. */
4:  ldrd r3, r5, [sp, #PLACES]         /* and WINDOWS */
    vldrb.8 q6, [r3], #16
    vldrb.u8 q7, [lr, q6]
    ldm lr!, {r0, r2, r4, r9-r11}
    mov r1, r7
5:  eight_windows 0, \rows
    .if \rows == 3
    eight_windows 8, 3
    eight_windows 16, 3
    .endif
    .if \rows == 2
    adds r1, r1, #(4 * lines * step)
    .else
    adds r1, r1, #(8 * lines * step)
    .endif
    b.w 5b
6:  ldrd r0, r4, [sp, #PITCH]          /* and STRIPS_END */
    add r7, r7, r0
    add r8, r8, #1
    cmp r7, r4
    bne.w 4b
    str lr, [sp, #CONSTANTS]
    ldr r0, [sp, #GROUPS]
    subs r0, r0, #1
    str r0, [sp, #GROUPS]
    bne.w 1b
    add sp, sp, #FRAME
    vpop {d8-d15}
    pop {r4-r11, pc}
    end_function \name
.endm

    .macro with_clipped name, rows, stride
    band \name, \rows, \stride, 0
    band \name\()_clipped, \rows, \stride, 1
    .endm

    .irp rows, 1, 2, 3
    with_clipped mve_depthwise_band_r\rows, \rows, 1
    .endr
    .irp rows, 1, 2
    with_clipped mve_depthwise_band_r\rows\()_s2, \rows, 2
    .endr
