/* Depthwise 3x3 of stride 1 on one to three rows of outputs of an NHWC image of int8. Armv8.1-M with MVE (integer).
 *
 *   void mve_depthwise_band_r<1|2|3>(const int8_t *x, const int32_t *constants, int8_t *y, const int16_t *places, int8_t *strips,
 *                                    const int32_t *fields);
 *
 *   x          two rows more than outputs; beside the image is one column of padding
 *   constants  for each channel bias, multiplier, rounder (mode exact of rounding.py), and 16 bytes of weights in the order of a strip
 *   y          may be x: eight channels are copied before their results
 *   places     for eight windows at a time the bytes from y, in the order w0, w4, w1, w5 ...; -1: no output
 *   strips     [8][width + 2][5]: for eight channels the bytes of all columns; the vectors after the last windows are read too
 *   fields     the C structure mve_depthwise_band: width, pixel (channels), windows, pitch (bytes of a strip), groups (of eight
 *              channels), zero_point, low, high, fill (the zero point of x)
 *
 * All windows of a band are bytes of one vector: row r of column c begins at byte 5 c + r, and weights in between are zero. So a window
 * takes two instructions, and eight results fill a vector although rows are short. Copying takes 3 for eight bytes.
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
#define LINES 5

.macro copy_pixel lines, step
    vldrb.u16 q0, [r0]
    add r0, r0, \step
    vstrb.16 q0, [r1, \lines]
.endm

.macro window sum, number, rows
    vldrb.8 q0, [r1, #(\number / \rows * LINES + \number % \rows)]
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
    vmax.s16 q1, q1, q4
    vmin.s16 q1, q1, q5
    vpt.s16 ge, q6, zr
    vstrbt.16 q1, [r8, q6]
    subs r5, r5, #8
    ble.w 6f
.endm

.macro band rows
    function mve_depthwise_band_r\rows
    push {r4-r11, lr}
    vpush {d8-d15}
    sub sp, sp, #FRAME
    str r1, [sp, #CONSTANTS]
    mov r8, r2
    ldrd r1, r12, [sp, #ARGUMENTS]     /* and fields */
    ldr r2, [r12, #FIELD_FILL]
    ldm r12, {r4-r7, r9-r12}
    vdup.8 q0, r2
    vdup.16 q4, r11
    vdup.16 q5, r12
    mov r12, r10
    lsl r2, r7, #3
    add r10, r1, r2
    add r11, r1, #LINES
    strd r0, r11, [sp, #X]             /* and INSIDE */
    mul r0, r4, r5
    strd r4, r0, [sp, #WIDTH]          /* and ROW */
    movs r4, #(\rows + 1)
    mls r0, r0, r4, r5
    str r0, [sp, #BACK]
    strd r3, r6, [sp, #PLACES]         /* and WINDOWS */
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
    .if \rows > 1
    vadd.i16 q1, q7, r5
    .endif
    .if \rows > 2
    vadd.i16 q2, q1, r5
    .endif
    dls lr, r2
3:  copy_pixel q3, r3
    copy_pixel q6, r3
    .if \rows == 1
    copy_pixel q7, r4
    .else
    copy_pixel q7, r3
    .if \rows == 2
    copy_pixel q1, r4
    .else
    copy_pixel q1, r3
    copy_pixel q2, r4
    .endif
    .endif
    adds r1, r1, #LINES
    le lr, 3b
    ldr lr, [sp, #CONSTANTS]
    ldr r7, [sp, #STRIPS]

    /* A channel. */
4:  ldm lr!, {r9-r11}
    vldrw.32 q7, [lr], #16
    mov r1, r7
    ldrd r3, r5, [sp, #PLACES]         /* and WINDOWS */
5:  eight_windows 0, \rows
    .if \rows == 3
    eight_windows 8, 3
    eight_windows 16, 3
    .endif
    .if \rows == 2
    adds r1, r1, #(4 * LINES)
    .else
    adds r1, r1, #(8 * LINES)
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
    end_function mve_depthwise_band_r\rows
.endm

    band 1
    band 2
    band 3
