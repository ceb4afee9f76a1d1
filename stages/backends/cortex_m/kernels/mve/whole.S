/* Depthwise convolution with a single window inside the image, four channels at a time. Armv8.1-M with MVE (integer).
 *
 *   void mve_depthwise_whole_<s8|u8>(const void *x, const int32_t *params, const int8_t *weights, const uint16_t *offsets, void *y,
 *                                    const int32_t *fields);
 *
 *   x        the first pixel of the window
 *   params   [blocks][3][4] bias (for the unchanged bytes, also of uint8), multiplier, rounder in mode lowered of rounding.py
 *   weights  [blocks][chunks][4][8], padded with zeros
 *   offsets  [chunks * 8] from x to the pixel of each tap
 *   fields   the C structure mve_whole
 *
 * Eight taps of four channels are gathered at a time: 14 instructions for 32 multiply-accumulates.
 */
#include "mve_asm.h"

#define OFFSETS 0                      /* the frame; with CHUNKS one ldrd */
#define CHUNKS 4
#define ZERO_POINT 8
#define FRAME 12
#define SAVED (32 + 36)                /* d8-d11, nine core registers */
#define Y (FRAME + SAVED)
#define FIELDS (Y + 4)

#define params r1
#define y r3
#define offsets r5
#define weights r7
#define left r12                       /* channels */

.macro channel type, sum, x
    vldrb.\type q1, [\x, q0]
    vldrb.s16 q2, [weights], #8
    vmladava.s16 \sum, q1, q2
.endm

.macro whole name, type
    function \name
    push {r4-r11, lr}
    vpush {d8-d11}
    sub sp, sp, #FRAME
    mov r8, r0
    adds r9, r0, #1
    add r10, r0, #2
    adds r11, r0, #3
    mov weights, r2
    ldr r4, [sp, #FIELDS]
    ldrd left, r5, [r4]                /* and chunks */
    strd r3, r5, [sp, #OFFSETS]
    ldr r0, [r4, #8]
    str r0, [sp, #ZERO_POINT]
    ldrd r0, r2, [r4, #12]             /* low, high */
    vdup.32 q4, r0
    vdup.32 q5, r2
    ldr y, [sp, #Y]

1:  ldrd offsets, lr, [sp, #OFFSETS]
    movs r0, #0
    movs r2, #0
    movs r4, #0
    movs r6, #0
    dls lr, lr
2:  vldrh.u16 q0, [offsets], #16
    channel \type, r0, r8
    channel \type, r2, r9
    channel \type, r4, r10
    channel \type, r6, r11
    le lr, 2b
    vmov q1[2], q1[0], r0, r4
    vmov q1[3], q1[1], r2, r6
    vldrw.32 q0, [params], #16
    vadd.i32 q1, q1, q0
    vldrw.32 q0, [params], #16
    vldrw.32 q2, [params], #16
    scale lowered, q1, q0, q2, q0
    ldr r0, [sp, #ZERO_POINT]
    vadd.i32 q1, q1, r0
    vmax.s32 q1, q1, q4
    vmin.s32 q1, q1, q5
    vstrb.32 q1, [y]
    subs left, left, #4
    ble 3f
    cmp left, #4                       /* the last block may overlap the one before it */
    ite lo
    movlo r0, left
    movhs r0, #4
    add y, y, r0
    add r8, r8, r0
    add r9, r9, r0
    add r10, r10, r0
    add r11, r11, r0
    b 1b
3:  add sp, sp, #FRAME
    vpop {d8-d11}
    pop {r4-r11, pc}
    end_function \name
.endm

whole mve_depthwise_whole_s8, s16
whole mve_depthwise_whole_u8, u16
