/* Matrix product with interleaved rows, requantized to 8 bits. Armv8.2-A with the dot product.
 *
 *   void neon_dotprod_8x12_r<R>(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y,
 *                               const int32_t *offsets, const int32_t *gemm, int tiles, int last);
 *
 * Computes `tiles` tiles of R rows (8 or 4), each times all columns. A step is four consecutive k. Columns are in blocks of 12,
 * then of 4; the last block may be partly used. In the last tile only the first `last` rows are needed. The other rows are
 * written to the place of row `last - 1`, which is then overwritten with the correct result.
 *
 *   panel    each tile [depth / 4][R][4]
 *   weights  each block [depth / 4][columns][4]
 *   params   each block [3][columns]: bias (zero points folded in), multiplier, shift (neon_requantize.h)
 *   y        row r starts at y + r * y_row
 *   offsets  for each row, a number that is added to all its sums; NULL: none
 *   gemm     struct neon_gemm (neon_gemm.h)
 *
 * Register blocking of a step in a block of 12: half an ld1 of activations and one of weights for 24 sdot of 16 products.
 *
 *                  v4   v5   v6     <- 12 columns, four weights each
 *   row 0  v0[0]   v8   v9  v10
 *   row 1  v0[1]  v11  v12  v13
 *   row 2  v0[2]  v14  v15  v16
 *   row 3  v0[3]  v17  v18  v19
 *   row 4  v1[0]  v20  v21  v22
 *   ...
 *   row 7  v1[3]  v29  v30  v31
 *
 * v2 and v3 are the activations of the next step. In a block of 4, v4 ... v7 are the weights of four steps.
 */
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

/* `operation` for each row: its output, lane of the activations, and sums. Rows 0 to 3 get the first argument, the others the second. */
.macro for_rows operation, low=0, high=0
    \operation \low, out0, 0, 8, 9, 10
    \operation \low, out1, 1, 11, 12, 13
    \operation \low, out2, 2, 14, 15, 16
    \operation \low, out3, 3, 17, 18, 19
    .if rows == 8
    \operation \high, out4, 0, 20, 21, 22
    \operation \high, out5, 1, 23, 24, 25
    \operation \high, out6, 2, 26, 27, 28
    \operation \high, out7, 3, 29, 30, 31
    .endif
.endm

/* The same from the last row to the first. */
.macro for_rows_backwards operation
    .if rows == 8
    \operation 0, out7, 3, 29, 30, 31
    \operation 0, out6, 2, 26, 27, 28
    \operation 0, out5, 1, 23, 24, 25
    \operation 0, out4, 0, 20, 21, 22
    .endif
    \operation 0, out3, 3, 17, 18, 19
    \operation 0, out2, 2, 14, 15, 16
    \operation 0, out1, 1, 11, 12, 13
    \operation 0, out0, 0, 8, 9, 10
.endm

/* Row 0 has the bias already. */
.macro start_12 argument, out, lane, c0, c1, c2
    .if \c0 > 8
    mov v\c0\().16b, v8.16b
    mov v\c1\().16b, v9.16b
    mov v\c2\().16b, v10.16b
    .endif
.endm

.macro offset_12 argument, out, lane, c0, c1, c2
    ld1r {v0.4s}, [temporary], #4
    add v\c0\().4s, v\c0\().4s, v0.4s
    add v\c1\().4s, v\c1\().4s, v0.4s
    add v\c2\().4s, v\c2\().4s, v0.4s
.endm

.macro offset_4 argument, out, lane, c0, c1, c2
    ld1r {v0.4s}, [temporary], #4
    add v\c0\().4s, v\c0\().4s, v0.4s
.endm

.macro dot_12 a, out, lane, c0, c1, c2
    sdot v\c0\().4s, v4.16b, v\a\().4b[\lane]
    sdot v\c1\().4s, v5.16b, v\a\().4b[\lane]
    sdot v\c2\().4s, v6.16b, v\a\().4b[\lane]
.endm

.macro dot_4 a, out, lane, c0, c1, c2
    sdot v\c0\().4s, v4.16b, v\a\().4b[\lane]
.endm

/* `count` steps of a block of 12. Activations are loaded for as many steps at once as registers allow. */
.macro steps_12 count
    .if rows == 8
    .rept \count / 2
    ld1 {v0.16b-v3.16b}, [a], #64
    ld1 {v4.16b-v6.16b}, [w], #48
    for_rows dot_12, 0, 1
    ld1 {v4.16b-v6.16b}, [w], #48
    for_rows dot_12, 2, 3
    .endr
    .else
    ld1 {v0.16b-v3.16b}, [a], #64
    .irp step, 0, 1, 2, 3
    ld1 {v4.16b-v6.16b}, [w], #48
    for_rows dot_12, \step
    .endr
    .endif
.endm

.macro step_12
    .if rows == 8
    ldp q0, q1, [a], #32
    .else
    ldr q0, [a], #16
    .endif
    ld1 {v4.16b-v6.16b}, [w], #48
    for_rows dot_12, 0, 1
.endm

.macro step_4
    .if rows == 8
    ldp q0, q1, [a], #32
    .else
    ldr q0, [a], #16
    .endif
    ldr q4, [w], #16
    for_rows dot_4, 0, 1
.endm

/* The sums of a block: bias and offsets, then all products. */
.macro accumulate columns_of_block
    for_rows start_\columns_of_block
    add_offsets offset_\columns_of_block
    mov a, panel
    subs steps, depth, #16
    b.lt 3f
2:
    .if \columns_of_block == 12
    steps_12 4
    .else
    .rept 4
    step_4
    .endr
    .endif
    subs steps, steps, #16
    b.ge 2b
3:  adds steps, steps, #16
    b.eq 5f
4:  step_\columns_of_block
    subs steps, steps, #4
    b.ne 4b
5:
.endm

.macro scale_rows how, c0, c1, c2, c3, c4, c5, c6, c7
    .if rows == 8
    scale_channels \how, v0, v1, \c0, \c1, \c2, \c3, \c4, \c5, \c6, \c7
    .else
    scale_channels \how, v0, v1, \c0, \c1, \c2, \c3
    .endif
.endm

/* Multipliers and shifts of four channels at a time: there are few registers left. */
.macro scale_12 how
    ldr q0, [p]
    ldr q1, [p, #48]
    scale_rows \how, v8, v11, v14, v17, v20, v23, v26, v29
    ldr q0, [p, #16]
    ldr q1, [p, #64]
    scale_rows \how, v9, v12, v15, v18, v21, v24, v27, v30
    ldr q0, [p, #32]
    ldr q1, [p, #80]
    scale_rows \how, v10, v13, v16, v19, v22, v25, v28, v31
.endm

.macro scale_4 how
    ldr q0, [p]
    ldr q1, [p, #16]
    scale_rows \how, v8, v11, v14, v17, v20, v23, v26, v29
.endm

.macro scale columns_of_block
    by_mode scale_\columns_of_block
    add p, p, #8 * \columns_of_block
    ld1 {v0.16b-v3.16b}, [gemm]     /* ZERO_POINT, LOW, HIGH, FLIP */
.endm

.macro finish_12 argument, out, lane, c0, c1, c2
    narrow_12 v\c0, v\c1, v\c2
    str d\c0, [\out], #8
    st1 {v\c0\().s}[2], [\out], #4
.endm

/* The address of the row after `above`, or `above` again if no more rows are needed. `count` rows are needed from `above` on. */
.macro row_below below, above, count
    subs \count, \count, #1
    csel step_row, y_row, xzr, gt
    add \below, \above, step_row
.endm

.macro gemm_8x12 count
    .set rows, \count
    function neon_dotprod_8x12_r\count
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
    ld1 {v8.4s-v10.4s}, [p], #48
    accumulate 12
    scale 12
    for_rows_backwards finish_12
    subs columns, columns, #12
    b.ge .Ltwelve\@

.Lfours\@:
    adds columns, columns, #12
    b.eq .Lnext\@
.Lfour\@:
    ldr q8, [p], #16
    accumulate 4
    scale 4
    write_4 .Lfour\@, for_rows_backwards

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
    end_function neon_dotprod_8x12_r\count
.endm

gemm_8x12 4
gemm_8x12 8

    .section .note.GNU-stack, "", %progbits
