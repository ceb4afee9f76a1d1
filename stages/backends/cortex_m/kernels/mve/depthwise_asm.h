/* Parts of depthwise convolutions that lanes.S, quads.S and depthwise3x3.S share. They name fields and registers that
 * lanes.S and quads.S define before they include this file. */
#pragma once

#include "mve_asm.h"

    /* The products in q2 and q3 to the sums in q4 to q7. Overwrites q0 and q1. */
.macro add_products
    vmovlb.s16 q0, q2
    vmovlt.s16 q1, q2
    vadd.i32 q4, q4, q0
    vadd.i32 q6, q6, q1
    vmovlb.s16 q0, q3
    vmovlt.s16 q1, q3
    vadd.i32 q5, q5, q0
    vadd.i32 q7, q7, q1
.endm

    /* The sums in q4 to q7 to bytes in q4, by the file's scale_vector. */
.macro sums_to_bytes mode, zero_point
    scale_vector q4, 0, \mode
    scale_vector q5, 1, \mode
    scale_vector q6, 2, \mode
    scale_vector q7, 3, \mode
    vqmovnb.s32 q4, q4
    vqmovnb.s32 q5, q5
    vqmovnt.s32 q4, q6
    vqmovnt.s32 q5, q7
    vqadd.s16 q4, q4, \zero_point
    vqadd.s16 q5, q5, \zero_point
    vqmovnb.s16 q4, q4
    vqmovnt.s16 q4, q5
.endm

    /* Ends a pixel at 3, a row at 2 and a group of \lanes channels at 1. \few: as in lanes.S. */
.macro next_group few, lanes, t, rows
    .if \few
    le lr, 3b
    .else
    subs r7, r7, #1
    bne.w 3b
    .endif
    ldrd \t, \rows, [sp, #X_ROW]       /* and rows that are left */
    add x, x, \t
    subs \rows, \rows, #1
    str \rows, [sp, #ROWS_LEFT]
    bne.w 2b
    ldr \t, [sp, #CHANNELS]
    subs \t, \t, #\lanes
    ble 4f
    str \t, [sp, #CHANNELS]
    cmp \t, #\lanes
    it hs
    movhs \t, #\lanes
    ldrd x, y, [sp, #X]
    add x, x, \t
    add y, y, \t
    strd x, y, [sp, #X]
    ldr r7, [sp, #FIELDS]
    ldr \t, [r7, #FIELD_GROUP_BYTES]
    add constants, constants, \t
    b.w 1b
4:  add sp, sp, #FRAME
    vpop {d8-d15}
    pop {r4-r11, pc}
.endm
