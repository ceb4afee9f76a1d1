/* Rows of int8 times a few columns of weights, one column at a time, requantized to 8 bits. Armv8.1-M with MVE (integer).
 *
 *   void mve_columns_<mode>[_offsets](const int8_t *x, const int8_t *weights, const int32_t *params, void *y, int32_t rows,
 *                                     int32_t columns, const int32_t *fields, const int32_t *offsets);
 *
 *   x        rows, fields.x_row bytes apart
 *   weights  [columns][chunks][16 elements of the depth], padded with zeros
 *   params   [columns][3]: bias, multiplier, rounder
 *   y        rows, fields.y_row bytes apart; `columns` > 0 bytes of each are written
 *   fields   number of full chunks; rest: remaining elements; x_row, y_row; zero_point, low, high
 *   offsets  [rows]: added to all sums of a row (the term of the weights' zero point); only _offsets reads them
 *   mode     how sums become outputs, see rounding.py: exact, lowered, single, shifted
 *
 * Register blocking of a chunk, four rows times one column: 9 instructions and 1 of the loop for 64 multiply-accumulates. A
 * remaining single row takes two chunks at a time: 6 and 1 of the loop for 32.
 *
 *   row 0 (r1)  r0         row 2 (r5)  r4
 *   row 1 (r3)  r2         row 3 (r7)  r6         weights: r8
 *
 * The sums of four rows start with the bias. They are requantized as one vector.
 */
#include "mve_asm.h"

#define WEIGHTS 0                      /* the frame; with CHUNKS one ldrd */
#define CHUNKS 4
#define MULTIPLIER 8
#define ROUNDER 12
#define REST 16
#define NEXT 20                        /* from the end of a row's whole chunks to the row four below */
#define Y_STEP 24                      /* four rows */
#define OFFSETS 28
#define PARAMS 32
#define X 36
#define Y 40
#define COLUMNS 44
#define FRAME 48
#define SAVED (64 + 36)                /* d8-d15, nine core registers */
#define ARGUMENTS (FRAME + SAVED)

#define FIELD_CHUNKS 0
#define FIELD_REST 4
#define FIELD_X_ROW 8
#define FIELD_Y_ROW 12
#define FIELD_ZERO_POINT 16

/* The sums in q0 to outputs in q0. */
.macro requantize_column mode
    ldrd r0, r2, [sp, #MULTIPLIER]
    .ifc \mode,shifted
    bic r4, r2, r2, asr #31
    and r2, r2, r2, asr #31
    vshl.s32 q0, r4
    vqrdmulh.s32 q0, q0, r0
    vdup.32 q1, r2
    lower_shifted q0, q1, q1
    vrshl.s32 q0, r2
    .else
    .ifc \mode,single
    vqdmulh.s32 q0, q0, r0
    .else
    vqrdmulh.s32 q0, q0, r0
    .endif
    .ifc \mode,lowered
    lower q0, q1
    .endif
    vqrdmulh.s32 q0, q0, r2
    .endif
    vadd.i32 q0, q0, q7
    vmax.s32 q0, q0, q5
    vmin.s32 q0, q0, q6
.endm

.macro columns mode, offsets
    function mve_columns_\mode\offsets
    push {r4-r11, lr}
    vpush {d8-d15}
    sub sp, sp, #FRAME
    str r1, [sp, #WEIGHTS]
    str r2, [sp, #PARAMS]
    strd r0, r3, [sp, #X]
    ldr r4, [sp, #(ARGUMENTS + 4)]     /* columns */
    ldr r5, [sp, #(ARGUMENTS + 8)]     /* fields */
    ldrd r0, r2, [r5, #FIELD_CHUNKS]   /* and rest */
    ldrd r9, r7, [r5, #FIELD_X_ROW]    /* and y_row */
    str r4, [sp, #COLUMNS]
    str r0, [sp, #CHUNKS]
    str r2, [sp, #REST]
    vctp.8 r2
    lsl r1, r9, #2
    sub r1, r1, r0, lsl #4
    lsl r3, r7, #2
    strd r1, r3, [sp, #NEXT]           /* and Y_STEP */
    movs r0, #0
    vidup.u32 q4, r0, #1
    vmul.i32 q4, q4, r7
    add r5, r5, #FIELD_ZERO_POINT
    ldmia r5, {r0, r1, r2}
    vdup.32 q7, r0
    vdup.32 q5, r1
    vdup.32 q6, r2

    /* A column. */
1:  ldr r0, [sp, #PARAMS]
    ldmia r0!, {r2, r3, r12}
    str r0, [sp, #PARAMS]
    strd r3, r12, [sp, #MULTIPLIER]
    mov r12, r2                        /* the bias */
    ldrd r1, r11, [sp, #X]             /* and y */
    ldr r10, [sp, #ARGUMENTS]          /* rows */
    .ifc \offsets,_offsets
    ldr r0, [sp, #(ARGUMENTS + 12)]
    str r0, [sp, #OFFSETS]
    .endif
    subs r10, r10, #4
    blt 5f

    /* Four rows. */
2:  add r3, r1, r9
    add r5, r3, r9
    add r7, r5, r9
    ldrd r8, lr, [sp, #WEIGHTS]        /* and the number of chunks */
    mov r0, r12
    mov r2, r12
    mov r4, r12
    mov r6, r12
    wls lr, lr, 4f
3:  vldrb.8 q2, [r8], #16
    vldrb.8 q0, [r1], #16
    vmladava.s8 r0, q0, q2
    vldrb.8 q1, [r3], #16
    vmladava.s8 r2, q1, q2
    vldrb.8 q0, [r5], #16
    vmladava.s8 r4, q0, q2
    vldrb.8 q1, [r7], #16
    vmladava.s8 r6, q1, q2
    le lr, 3b
4:  ldrd lr, r8, [sp, #REST]           /* and the step to the next rows; r8 is read below */
    cmp lr, #0
    beq 4f
    ldr lr, [sp, #CHUNKS]
    ldr r8, [sp, #WEIGHTS]
    add r8, r8, lr, lsl #4
    vldrb.8 q2, [r8]
    vpstt
    vldrbt.8 q0, [r1]
    vldrbt.8 q1, [r3]
    vmladava.s8 r0, q0, q2
    vmladava.s8 r2, q1, q2
    vpstt
    vldrbt.8 q0, [r5]
    vldrbt.8 q1, [r7]
    vmladava.s8 r4, q0, q2
    vmladava.s8 r6, q1, q2
    ldr r8, [sp, #NEXT]
4:  add r1, r1, r8
    vmov q0[2], q0[0], r0, r4
    vmov q0[3], q0[1], r2, r6
    .ifc \offsets,_offsets
    ldr r4, [sp, #OFFSETS]
    vldrw.32 q1, [r4], #16
    vadd.i32 q0, q0, q1
    str r4, [sp, #OFFSETS]
    .endif
    requantize_column \mode
    ldr r8, [sp, #Y_STEP]
    vstrb.32 q0, [r11, q4]
    add r11, r11, r8
    subs r10, r10, #4
    bge 2b

    /* 4 + r10 rows are left. */
5:  adds r10, r10, #4
    beq 9f
6:  mov r3, r1
    ldrd r8, r4, [sp, #WEIGHTS]        /* and the number of chunks */
    mov r0, r12
    lsr lr, r4, #1
    wls lr, lr, 8f
7:  vldrb.8 q0, [r3], #16
    vldrb.8 q1, [r8], #16
    vmladava.s8 r0, q0, q1
    vldrb.8 q0, [r3], #16
    vldrb.8 q1, [r8], #16
    vmladava.s8 r0, q0, q1
    le lr, 7b
8:  tst r4, #1
    beq 8f
    vldrb.8 q0, [r3], #16
    vldrb.8 q1, [r8], #16
    vmladava.s8 r0, q0, q1
8:  ldr r4, [sp, #REST]
    cmp r4, #0
    beq 8f
    vpst
    vldrbt.8 q0, [r3]
    vldrb.8 q1, [r8]
    vmladava.s8 r0, q0, q1
8:  .ifc \offsets,_offsets
    ldr r4, [sp, #OFFSETS]
    ldr r2, [r4], #4
    add r0, r0, r2
    str r4, [sp, #OFFSETS]
    .endif
    vdup.32 q0, r0
    requantize_column \mode
    vmov r0, s0
    strb r0, [r11]
    ldr r4, [sp, #Y_STEP]
    add r11, r11, r4, lsr #2
    add r1, r1, r9
    subs r10, r10, #1
    bne 6b

    /* The next column. */
9:  ldr r0, [sp, #WEIGHTS]
    ldr r1, [sp, #CHUNKS]
    ldr r2, [sp, #REST]
    add r0, r0, r1, lsl #4
    cmp r2, #0
    it ne
    addne r0, r0, #16
    str r0, [sp, #WEIGHTS]
    ldrd r0, r1, [sp, #Y]              /* and columns */
    add r0, r0, #1
    subs r1, r1, #1
    strd r0, r1, [sp, #Y]
    bne 1b
    add sp, sp, #FRAME
    vpop {d8-d15}
    pop {r4-r11, pc}
    end_function mve_columns_\mode\offsets
.endm

    columns exact
    columns lowered
    columns single
    columns shifted
    columns exact, _offsets
    columns lowered, _offsets
    columns single, _offsets
    columns shifted, _offsets
