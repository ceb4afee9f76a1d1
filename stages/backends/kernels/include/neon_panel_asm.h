/* Matrix products with interleaved rows, requantized to 8 bits, 8 or 4 rows (`rows`) times 12 columns at a time. A64 assembly.
 *
 *   void name(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y,
 *             const int32_t *offsets, const int32_t *gemm, int tiles, int last);
 *
 * Computes `tiles` tiles of `rows` rows, each times all columns. A step is CHUNK consecutive k. Columns are in blocks of 12,
 * then of 4; the last block may be partly used. In the last tile only the first `last` rows are needed. The other rows are
 * written to the place of row `last - 1`, which is then overwritten with the correct result.
 *
 *   panel    each tile [depth / CHUNK][rows][CHUNK]
 *   weights  each block [depth / CHUNK][columns][CHUNK]
 *   params   each block [3][columns]: bias (zero points folded in), multiplier, shift (neon_requantize.h)
 *   y        row r starts at y + r * y_row
 *   offsets  for each row, a number that is added to all its sums; NULL: none
 *   gemm     struct neon_gemm (neon_gemm.h)
 *
 * The including file defines what neon_gemm_asm.h requires, except the registers below, and two macros:
 *   block_12        the results of a block of 12 columns; `columns` columns follow it
 *   block_4 next    the same of a block of 4; subtracts its columns and jumps to `next` if columns are left
 * Both start with `panel` at the tile and advance w, p, and out0 ... out7. They end with `a` behind the tile.
 * v8-v31 have the sums.
 */
#pragma once

#define SCRATCH0 v2
#define SCRATCH1 v3
#define SCRATCH2 v4
#define SCRATCH3 v5
#define ZERO_POINT v0
#define LOW v1
#define HIGH v2
#define FLIP v3
#define FIRST_BIAS v8

#define panel x0
#define weights x1
#define params x2
#define y x3
#define offsets x4
#define gemm x5
#define tiles w6
#define last w7
#define depth w8
#define y_row x9
#define a x10           /* walks through the tile, */
#define w x11           /* the weights */
#define p x12           /* and the parameters */
#define steps w13
#define columns w14     /* left in this tile */
#define mode w15
#define step_row x17
#define out0 x19
#define out1 x20
#define out2 x21
#define out3 x22
#define out4 x23
#define out5 x24
#define out6 x25
#define out7 x26

#include "neon_gemm_asm.h"

/* The address of the row after `above`, or `above` again if no more rows are needed. `count` rows are needed from `above` on. */
.macro row_below below, above, count
    subs \count, \count, #1
    csel step_row, y_row, xzr, gt
    add \below, \above, step_row
.endm

/* Function `name` for tiles of `count` rows. */
.macro panel_product name, count
    .set rows, \count
    function \name
    stp x19, x20, [sp, #-64]!
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    ldrsw y_row, [gemm, #NEON_GEMM_Y_ROW]
    ldr depth, [gemm, #NEON_GEMM_DEPTH]
    ldr mode, [gemm, #NEON_GEMM_MODE]

.Ltile\@:
    mov w16, #rows
    cmp tiles, #1
    csel w16, last, w16, eq
    mov out0, y
    row_below out1, out0, w16
    row_below out2, out1, w16
    row_below out3, out2, w16
    .if rows == 8
    row_below out4, out3, w16
    row_below out5, out4, w16
    row_below out6, out5, w16
    row_below out7, out6, w16
    .endif
    mov w, weights
    mov p, params
    ldr columns, [gemm, #NEON_GEMM_COLUMNS]
    subs columns, columns, #12
    b.lt .Lfours\@

.Ltwelve\@:
    block_12
    subs columns, columns, #12
    b.ge .Ltwelve\@

.Lfours\@:
    adds columns, columns, #12
    b.eq .Lnext\@
.Lfour\@:
    block_4 .Lfour\@

.Lnext\@:
    .if rows == 8
    add y, y, y_row, lsl #3
    .else
    add y, y, y_row, lsl #2
    .endif
    mov panel, a
    next_tile .Ltile\@

    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x19, x20, [sp], #64
    end_function \name
.endm
