/* Matrix product requantized to 8 bits. Armv8-A without the dot product.
 *
 *   void neon_4x4_r<R>[_wide](const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
 *                             const int32_t *offsets, const int32_t *gemm, int tiles);
 *
 * Computes `tiles` tiles of R rows (1 to 4), each times all columns. Columns are in blocks of 4; the last block may be partly
 * used. The depth is a multiple of 8. It is split into chunks of 16; the last chunk may have 8.
 *
 *   weights  each block [chunks of 16][4][16], then [4][8]
 *   params   each block [3][4]: bias (zero points folded in), multiplier, shift (neon_requantize.h)
 *   x, y, offsets, gemm: neon_rows_asm.h
 *
 * Register blocking of a chunk: one ld1 of 64 weights, a load for each row, and for each sum
 *
 *   smull   v3 = x[0..7] * w[0..7]           int16
 *   smlal2  v3 = v3 + x[8..15] * w[8..15]    int16
 *   sadalp  sum = sum + pairs of v3          int32
 *
 *              v4   v5   v6   v7     <- four columns, 16 weights each
 *   row 0  v0  v16  v17  v18  v19
 *   row 1  v0  v20  v21  v22  v23    four partial sums in each register, added up at the end
 *   row 2  v0  v24  v25  v26  v27
 *   row 3  v0  v28  v29  v30  v31
 *
 * Two products of -128 * -128 do not fit int16. If the weights k and k + 8 of a chunk are both -128, the _wide functions are
 * needed. They widen each product separately.
 */
#define tail w10        /* remainder of the depth: 0 or 8 */
#include "neon_rows_asm.h"

.macro start argument, out, number, c0, c1, c2, c3, end
    movi v\c0\().4s, #0
    movi v\c1\().4s, #0
    movi v\c2\().4s, #0
    movi v\c3\().4s, #0
.endm

.macro products_16 sum, column, product
    smull v\product\().8h, v0.8b, v\column\().8b
    .if wide
    sadalp v\sum\().4s, v\product\().8h
    smull2 v\product\().8h, v0.16b, v\column\().16b
    .else
    smlal2 v\product\().8h, v0.16b, v\column\().16b
    .endif
    sadalp v\sum\().4s, v\product\().8h
.endm

.macro chunk_16 argument, out, number, c0, c1, c2, c3, end
    ldr q0, [\end, k]
    products_16 \c0, 4, 1
    products_16 \c1, 5, 2
    products_16 \c2, 6, 3
    products_16 \c3, 7, 12
.endm

.macro products_8 sum, column, product
    smull v\product\().8h, v0.8b, v\column\().8b
    sadalp v\sum\().4s, v\product\().8h
.endm

.macro chunk_8 argument, out, number, c0, c1, c2, c3, end
    ldr d0, [\end]
    products_8 \c0, 4, 1
    products_8 \c1, 5, 2
    products_8 \c2, 6, 3
    products_8 \c3, 7, 12
.endm

/* Partial sums to one register of four columns, with the bias (v0). */
.macro gather argument, out, number, c0, c1, c2, c3, end
    addp v\c0\().4s, v\c0\().4s, v\c1\().4s
    addp v\c2\().4s, v\c2\().4s, v\c3\().4s
    addp v\c0\().4s, v\c0\().4s, v\c2\().4s
    add v\c0\().4s, v\c0\().4s, v0.4s
.endm

.macro add_offset argument, out, number, c0, c1, c2, c3, end
    ld1r {v3.4s}, [temporary], #4
    add v\c0\().4s, v\c0\().4s, v3.4s
.endm

.macro scale how
    scale_rows \how, v1, v2, v16, v20, v24, v28
.endm

.macro gemm_4x4 count, suffix, is_wide
    .set rows, \count
    .set wide, \is_wide
    enter neon_4x4_r\count\suffix, w16
.Ltile\@:
    start_tile

.Lblock\@:
    for_rows start
    neg k, whole
    cbz whole, .Leight\@
.Lchunk\@:
    ld1 {v4.16b-v7.16b}, [w], #64
    for_rows chunk_16
    adds k, k, #16
    b.ne .Lchunk\@
.Leight\@:
    cbz tail, .Lsums\@
    ld1 {v4.8b-v7.8b}, [w], #32
    for_rows chunk_8
.Lsums\@:
    ld1 {v0.4s-v2.4s}, [p], #48
    for_rows gather
    add_offsets add_offset
    by_mode scale
    write_4 .Lblock\@, for_rows

    end_tile .Ltile\@
    leave neon_4x4_r\count\suffix
.endm

    gemm_4x4 1, , 0
    gemm_4x4 2, , 0
    gemm_4x4 3, , 0
    gemm_4x4 4, , 0
    gemm_4x4 1, _wide, 1
    gemm_4x4 2, _wide, 1
    gemm_4x4 3, _wide, 1
    gemm_4x4 4, _wide, 1

    .section .note.GNU-stack, "", %progbits
