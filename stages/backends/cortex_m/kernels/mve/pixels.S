/* Rows of up to 16 int8 times packed weights, requantized to int8 without a clamp. Armv8.1-M with MVE (integer).
 *
 *   void mve_pixels_<mode>(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, int32_t rows, int32_t blocks,
 *                          const int32_t *fields, const int32_t *offsets);
 *
 *   The operands are those of gemm.S with one chunk. `offsets`, low and high are not read: narrowing saturates. mode is exact or
 *   lowered.
 *
 * The weights of a block stay in q4 ... q7, its bias, multiplier and rounder in q1, q2 and q3, while all rows are computed: 18
 * instructions for four outputs (lowered: 21).
 */
#include "mve_asm.h"

#define SAVED (64 + 36)                /* d8-d15, nine core registers */
#define ROWS SAVED
#define BLOCKS (SAVED + 4)
#define FIELDS (SAVED + 8)

#define FIELD_REST 4                   /* 0: all 16 */
#define FIELD_X_ROW 8
#define FIELD_Y_ROW 12
#define FIELD_ZERO_POINT 16

.macro pixels mode
    function mve_pixels_\mode
    push {r4-r11, lr}
    vpush {d8-d15}
    ldr r11, [sp, #FIELDS]
    mov r10, r2
    ldr r4, [r11, #FIELD_REST]
    cmp r4, #0
    it eq
    moveq r4, #16
    vctp.8 r4
    mov r5, r3
    ldrd r7, r8, [r11, #FIELD_X_ROW]   /* and y_row */
    ldr r9, [r11, #FIELD_ZERO_POINT]
    mov r11, r0
    ldr r12, [sp, #BLOCKS]

    /* A block. */
1:  mov r3, r11
    vldrb.8 q4, [r1], #16
    vldrb.8 q5, [r1], #16
    vldrb.8 q6, [r1], #16
    vldrb.8 q7, [r1], #16
    vldrw.32 q1, [r10]
    vldrw.32 q2, [r10, #16]
    vldrw.32 q3, [r10, #32]
    ldr lr, [sp, #ROWS]
    str r5, [sp, #FIELDS]              /* no longer needed */
    dls lr, lr
2:  vpst
    vldrbt.8 q0, [r3]
    add r3, r3, r7
    vmladav.s8 r0, q0, q4
    vmladav.s8 r2, q0, q5
    vmladav.s8 r4, q0, q6
    vmladav.s8 r6, q0, q7
    vmov q0[2], q0[0], r0, r4
    vmov q0[3], q0[1], r2, r6
    vadd.i32 q0, q0, q1
    vqrdmulh.s32 q0, q0, q2
    .ifc \mode,lowered
    lower q0, q1
    vldrw.32 q1, [r10]
    .endif
    vqrdmulh.s32 q0, q0, q3
    vadd.i32 q0, q0, r9
    vqmovnb.s32 q0, q0
    vqmovnb.s16 q0, q0
    vstrb.32 q0, [r5]
    add r5, r5, r8
    le lr, 2b
    ldr r5, [sp, #FIELDS]
    add r10, r10, #48
    add r5, r5, #4
    subs r12, r12, #1
    bne 1b
    vpop {d8-d15}
    pop {r4-r11, pc}
    end_function mve_pixels_\mode
.endm

    pixels exact
    pixels lowered
