/* Matrix products whose rows of activations are read in place, 1 to 4 rows (`rows`) at a time. A64 assembly.
 *
 *   void name(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
 *             const int32_t *gemm, int tiles);
 *
 *   x        row r is at x + r * x_row; only `depth` bytes of it are read
 *   y        row r starts at y + r * y_row
 *   offsets  for each row, a number that is added to all its sums; NULL: none
 *   gemm     struct neon_gemm (neon_gemm.h)
 *
 * Registers (`enter` and `start_tile` set those with a star; the w registers are 32 bits wide):
 *
 *   x0, x19-x21   * end0-end3   the end of the multiple of 16 in each row
 *   x3, x22-x24   * out0-out3   the output of each row
 *   x1, x2, x4    weights, params, offsets
 *   x5, w6        gemm, tiles left
 *   x7, x8        * x_row, y_row
 *   x9            * whole: the multiple of 16 in the depth
 *   x10           * tail: the rest of the depth. The including file defines `tail` as w10 or x10
 *   w11, w12      * columns left in this tile, mode
 *   x13, x14      * w, p: walk through the weights and the parameters
 *   x15           k: from -whole to 0
 *   x16           temporary
 *   v0-v7         activations, weights, constants
 *   v8-v11        * ZERO_POINT, LOW, HIGH, FLIP
 *   v12-v15       scratch
 *   v16-v31       sums: four registers for each row
 */
#pragma once

#define ZERO_POINT v8
#define LOW v9
#define HIGH v10
#define FLIP v11
#define SCRATCH0 v12
#define SCRATCH1 v13
#define SCRATCH2 v14
#define SCRATCH3 v15
#define FIRST_BIAS v16
#define end0 x0
#define end1 x19
#define end2 x20
#define end3 x21
#define weights x1
#define params x2
#define out0 x3
#define out1 x22
#define out2 x23
#define out3 x24
#define offsets x4
#define gemm x5
#define tiles w6
#define x_row x7
#define y_row x8
#define whole x9
#define columns w11
#define mode w12
#define w x13
#define p x14
#define k x15

#include "neon_gemm_asm.h"

/* `operation` for each row in use, with its output, number, sums and end. */
.macro for_rows operation, argument=0
    \operation \argument, out0, 0, 16, 17, 18, 19, end0
    .if rows > 1
    \operation \argument, out1, 1, 20, 21, 22, 23, end1
    .endif
    .if rows > 2
    \operation \argument, out2, 2, 24, 25, 26, 27, end2
    .endif
    .if rows > 3
    \operation \argument, out3, 3, 28, 29, 30, 31, end3
    .endif
.endm

/* Scales the registers of the same four columns of all rows; unused rows are skipped. */
.macro scale_rows how, multiplier, shift, r0, r1, r2, r3
    .if rows == 1
    scale_channels \how, \multiplier, \shift, \r0
    .elseif rows == 2
    scale_channels \how, \multiplier, \shift, \r0, \r1
    .elseif rows == 3
    scale_channels \how, \multiplier, \shift, \r0, \r1, \r2
    .else
    scale_channels \how, \multiplier, \shift, \r0, \r1, \r2, \r3
    .endif
.endm

/* The beginning of function `name`. `depth` is x16, or w16 where tail is w10. */
.macro enter name, depth
    function \name
    stp x19, x20, [sp, #-48]!
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    ldpsw x_row, y_row, [gemm, #NEON_GEMM_X_ROW]
    ldrsw temporary, [gemm, #NEON_GEMM_DEPTH]
    and whole, temporary, #-16
    and tail, \depth, #15
    ldr mode, [gemm, #NEON_GEMM_MODE]
    ld1 {v8.16b-v11.16b}, [gemm]    /* ZERO_POINT, LOW, HIGH, FLIP */
    add end0, end0, whole
.endm

/* The addresses of a tile's rows, from the first row's. */
.macro start_tile
    .if rows > 1
    add end1, end0, x_row
    add out1, out0, y_row
    .endif
    .if rows > 2
    add end2, end1, x_row
    add out2, out1, y_row
    .endif
    .if rows > 3
    add end3, end2, x_row
    add out3, out2, y_row
    .endif
    mov w, weights
    mov p, params
    ldr columns, [gemm, #NEON_GEMM_COLUMNS]
.endm

/* The first row of the next tile, at `tile`. */
.macro end_tile tile
    ldr columns, [gemm, #NEON_GEMM_COLUMNS]
    sub out0, out0, columns, sxtw
    .rept rows
    add end0, end0, x_row
    add out0, out0, y_row
    .endr
    next_tile \tile
.endm

.macro leave name
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x19, x20, [sp], #48
    end_function \name
.endm
