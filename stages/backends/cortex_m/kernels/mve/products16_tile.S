/* Sums of products of 16-bit activations with 8-bit weights: three rows or one row times four channels. Armv8.1-M with MVE.
 *
 *   void mve_products16_r<R>(const int16_t *x, const int8_t *w, int32_t depth, int32_t blocks, int32_t *sums);
 *
 * Rows and channels are `depth` elements apart; `blocks` * 8 elements of each are summed. The result is sums[channel * R + row].
 * Three rows: two channels at a time, 11 instructions and the end of a low-overhead loop for 48 multiply-accumulates. Loads widen
 * the weights.
 *
 *              q2   q3      <- weights
 *   row 0   q0 | r0   r6
 *   row 1   q1 | r2   r8    VMLADAVA needs sums in even registers; loads that widen
 *   row 2   q0 | r4   r10   need addresses in the low registers
 *
 * One row: four channels at a time, 10 instructions for 32.
 */
#include "mve_asm.h"

#define SUMS 36                        /* the fifth argument, after what is saved */

.macro two_channels
    .irp sum, r0, r2, r4, r6, r8, r10
    mov \sum, #0
    .endr
    dls lr, r11
1:
    vldrb.s16 q2, [r7], #8
    vldrh.16 q0, [r1], #16
    vldrb.s16 q3, [r5], #8
    vmladava.s16 r0, q0, q2
    vldrh.16 q1, [r3], #16
    vmladava.s16 r6, q0, q3
    vmladava.s16 r2, q1, q2
    vldrh.16 q0, [r9], #16
    vmladava.s16 r8, q1, q3
    vmladava.s16 r4, q0, q2
    vmladava.s16 r10, q0, q3
    le lr, 1b
    ldr lr, [sp, #SUMS]
    stm lr!, {r0, r2, r4, r6, r8, r10}
.endm

function mve_products16_r3
    push {r4-r11, lr}
    mov r7, r1
    mov r1, r0
    mov r11, r3
    mov r12, r2
    add r3, r1, r12, lsl #1
    add r9, r3, r12, lsl #1
    add r5, r7, r12
    two_channels
    str lr, [sp, #SUMS]
    .irp x, r1, r3, r9
    sub \x, \x, r11, lsl #4
    .endr
    sub r7, r7, r11, lsl #3
    add r7, r7, r12, lsl #1
    add r5, r7, r12
    two_channels
    pop {r4-r11, pc}
    end_function mve_products16_r3

function mve_products16_r1
    push {r4-r11, lr}
    mov r9, r0
    mov r7, r1
    dls lr, r3
    add r1, r7, r2
    add r3, r1, r2
    add r5, r3, r2
    .irp sum, r0, r2, r4, r6
    mov \sum, #0
    .endr
1:
    vldrh.16 q0, [r9], #16
    vldrb.s16 q1, [r7], #8
    vldrb.s16 q2, [r1], #8
    vmladava.s16 r0, q0, q1
    vldrb.s16 q3, [r3], #8
    vmladava.s16 r2, q0, q2
    vldrb.s16 q1, [r5], #8
    vmladava.s16 r4, q0, q3
    vmladava.s16 r6, q0, q1
    le lr, 1b
    ldr lr, [sp, #SUMS]
    stm lr, {r0, r2, r4, r6}
    pop {r4-r11, pc}
    end_function mve_products16_r1
