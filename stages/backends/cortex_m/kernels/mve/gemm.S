/* Rows of int8 times packed weights, requantized to 8 bits. Armv8.1-M with MVE (integer).
 *
 *   void mve_gemm_<mode>_<depth>[_offsets](const int8_t *x, const int8_t *weights, const int32_t *params, void *y, int32_t rows,
 *                                          int32_t blocks, const int32_t *fields, const int32_t *offsets);
 *
 *   x        rows, fields.x_row bytes apart
 *   weights  [blocks][chunks][4 channels][16 elements of the depth], padded with zeros
 *   params   [blocks][3][4 channels]: bias, multiplier, rounder
 *   y        rows, fields.y_row bytes apart; blocks * 4 channels of each are written
 *   fields   more: number of full chunks after the first; rest: elements of the last chunk (depth whole: none); x_row, y_row;
 *            zero_point, low, high
 *   offsets  [rows]: added to all sums of a row (the term of the weights' zero point); only _offsets reads them
 *
 *   depth    whole  a multiple of 16
 *            rest   above 16, not a multiple
 *            short  below 16
 *   mode     how sums become outputs, see rounding.py: exact, lowered, single, shifted
 *
 * Register blocking of a chunk, two rows times four channels: 14 instructions and 2 of the loop for 128 multiply-accumulates. All
 * even registers including lr are sums. So the loop for two rows counts in r7; only the loop for one row is a low-overhead loop.
 *
 *                w0    w1    w2    w3     <- r5, each loaded once
 *   row 0 (r9)  | r0    r4    r8    r12
 *   row 1 (r11) | r2    r6    r10   lr
 *
 * The sums of each row are moved to a vector with two instructions (q0 and q1) and requantized there. The first chunk multiplies
 * without adding, so sums need not be cleared.
 */
#include "mve_asm.h"

#define MORE 0                         /* the frame: values that a tile starts with, loaded by one ldm */
#define X0 4
#define X1 8
#define Y_STEP 12                      /* with Y_END: one ldrd */
#define Y_END 16
#define WEIGHTS 20
#define PARAMS 24
#define ROWS 28
#define X_ROW 32
#define OFFSETS 36
#define Y_SKIP 40                      /* from the end of a row to the next pair of rows */
#define FRAME 48
#define SAVED (48 + 36)                /* d8-d13, nine core registers */
#define ARGUMENTS (FRAME + SAVED)

#define FIELD_MORE 0
#define FIELD_REST 4
#define FIELD_X_ROW 8
#define FIELD_Y_ROW 12
#define FIELD_ZERO_POINT 16

/* The products of a chunk whose rows are in q0 and q1. */
.macro multiply_two_rows how
    vldrb.8 q2, [r5], #16
    \how r0, q0, q2
    vldrb.8 q3, [r5], #16
    \how r2, q1, q2
    vldrb.8 q2, [r5], #16
    \how r4, q0, q3
    \how r6, q1, q3
    vldrb.8 q3, [r5], #16
    \how r8, q0, q2
    \how r10, q1, q2
    \how r12, q0, q3
    \how lr, q1, q3
.endm

.macro chunk_of_two_rows how
    vldrb.8 q0, [r9], #16
    vldrb.8 q1, [r11], #16
    multiply_two_rows \how
.endm

/* The last elements of the rows; P0 selects them. */
.macro rest_of_two_rows how
    vpstt
    vldrbt.8 q0, [r9]
    vldrbt.8 q1, [r11]
    multiply_two_rows \how
.endm

.macro multiply_row how
    vldrb.8 q2, [r5], #16
    \how r0, q0, q2
    vldrb.8 q3, [r5], #16
    \how r4, q0, q3
    vldrb.8 q2, [r5], #16
    \how r8, q0, q2
    vldrb.8 q3, [r5], #16
    \how r12, q0, q3
.endm

.macro chunk_of_row how
    vldrb.8 q0, [r9], #16
    multiply_row \how
.endm

.macro rest_of_row how
    vpst
    vldrbt.8 q0, [r9]
    multiply_row \how
.endm

/* One instruction for each row's vector. */
.macro for_rows one, operation, operand:vararg
    \operation q0, q0, \operand
    .if !\one
    \operation q1, q1, \operand
    .endif
.endm

/* Sums in q0 (and q1) to outputs. */
.macro requantize one, mode, offsets
    vldrw.32 q2, [r3], #16
    for_rows \one, vadd.i32, q2
    .ifc \offsets,_offsets
    ldr r6, [sp, #OFFSETS]
    .if \one
    ldr r4, [r6]
    vadd.i32 q0, q0, r4
    .else
    ldrd r4, r6, [r6]
    vadd.i32 q0, q0, r4
    vadd.i32 q1, q1, r6
    .endif
    .endif
    .ifc \mode,shifted
    vldrw.32 q2, [r3, #16]
    vmov.i32 q3, #0
    vmax.s32 q3, q3, q2
    for_rows \one, vshl.s32, q3
    vldrw.32 q3, [r3], #32
    for_rows \one, vqrdmulh.s32, q3
    vmov.i32 q3, #0
    vmin.s32 q2, q2, q3
    lower_shifted q0, q2, q3
    .if !\one
    lower_shifted q1, q2, q3
    .endif
    for_rows \one, vrshl.s32, q2
    .else
    vldrw.32 q3, [r3], #16
    vldrw.32 q2, [r3], #16
    .ifc \mode,single
    for_rows \one, vqdmulh.s32, q3
    .else
    for_rows \one, vqrdmulh.s32, q3
    .endif
    .ifc \mode,lowered
    lower q0, q3
    .if !\one
    lower q1, q3
    .endif
    .endif
    for_rows \one, vqrdmulh.s32, q2
    .endif
    for_rows \one, vadd.i32, q4
    for_rows \one, vmax.s32, q5
    for_rows \one, vmin.s32, q6
.endm

.macro gemm mode, depth, offsets
    function mve_gemm_\mode\()_\depth\()\offsets
    push {r4-r11, lr}
    vpush {d8-d13}
    sub sp, sp, #FRAME
    ldrd r4, r5, [sp, #ARGUMENTS]      /* rows, blocks */
    ldrd r6, r7, [sp, #ARGUMENTS + 8]  /* fields, offsets */
    ldrd r8, r9, [r6, #FIELD_X_ROW]
    ldr r10, [r6, #FIELD_MORE]
    add r11, r3, r5, lsl #2            /* the end of the first row */
    rsb r5, r11, r3
    add r5, r5, r9, lsl #1
    strd r10, r0, [sp, #MORE]
    add r0, r0, r8
    str r0, [sp, #X1]
    strd r9, r11, [sp, #Y_STEP]
    strd r1, r2, [sp, #WEIGHTS]
    strd r4, r8, [sp, #ROWS]
    strd r7, r5, [sp, #OFFSETS]
    .ifnc \depth,whole
    ldr r10, [r6, #FIELD_REST]
    vctp.8 r10
    .endif
    mov r1, r3
    add r6, r6, #FIELD_ZERO_POINT
    ldmia r6, {r0, r2, r3}
    vdup.32 q4, r0
    vdup.32 q5, r2
    vdup.32 q6, r3
    cmp r4, #2
    blt 5f

    /* Two rows. */
1:  ldrd r5, r3, [sp, #WEIGHTS]
2:  ldm sp, {r7, r9, r11}
    .ifnc \depth,short
    chunk_of_two_rows vmladav.s8
    cbz r7, 4f
3:  chunk_of_two_rows vmladava.s8
    subs r7, r7, #1
    bne 3b
4:
    .endif
    .ifc \depth,rest
    rest_of_two_rows vmladava.s8
    .endif
    .ifc \depth,short
    rest_of_two_rows vmladav.s8
    .endif
    vmov q0[2], q0[0], r0, r8
    vmov q0[3], q0[1], r4, r12
    vmov q1[2], q1[0], r2, r10
    vmov q1[3], q1[1], r6, lr
    requantize 0, \mode, \offsets
    ldrd r0, r2, [sp, #Y_STEP]
    add r0, r0, r1
    vstrb.32 q0, [r1], #4
    vstrb.32 q1, [r0]
    cmp r1, r2
    bne 2b
    ldrd r0, r4, [sp, #ROWS]           /* rows, x_row */
    ldr r5, [sp, #X1]
    ldrd r6, r7, [sp, #OFFSETS]        /* offsets, y_skip */
    ldr r3, [sp, #Y_STEP]
    add r5, r5, r4
    add r4, r4, r5
    add r1, r1, r7
    add r2, r2, r3, lsl #1
    add r6, r6, #8
    subs r0, r0, #2
    strd r5, r4, [sp, #X0]
    str r2, [sp, #Y_END]
    str r0, [sp, #ROWS]
    str r6, [sp, #OFFSETS]
    cmp r0, #1
    bgt 1b
5:  ldr r0, [sp, #ROWS]
    cmp r0, #0
    beq 9f

    /* The remaining row. */
    ldrd r5, r3, [sp, #WEIGHTS]
6:  ldm sp, {r7, r9, r11}
    .ifnc \depth,short
    chunk_of_row vmladav.s8
    wls lr, r7, 8f
7:  chunk_of_row vmladava.s8
    le lr, 7b
8:
    .endif
    .ifc \depth,rest
    rest_of_row vmladava.s8
    .endif
    .ifc \depth,short
    rest_of_row vmladav.s8
    .endif
    vmov q0[2], q0[0], r0, r8
    vmov q0[3], q0[1], r4, r12
    requantize 1, \mode, \offsets
    ldr r2, [sp, #Y_END]
    vstrb.32 q0, [r1], #4
    cmp r1, r2
    bne 6b
9:  add sp, sp, #FRAME
    vpop {d8-d13}
    pop {r4-r11, pc}
    end_function mve_gemm_\mode\()_\depth\()\offsets
.endm

.macro gemm_depths mode, offsets
    gemm \mode, whole, \offsets
    gemm \mode, rest, \offsets
    gemm \mode, short, \offsets
.endm

    gemm_depths exact
    gemm_depths lowered
    gemm_depths single
    gemm_depths shifted
    gemm_depths exact, _offsets
    gemm_depths lowered, _offsets
    gemm_depths single, _offsets
    gemm_depths shifted, _offsets
