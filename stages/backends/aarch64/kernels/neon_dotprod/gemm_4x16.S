/* Matrix product with rows that are read in place (hybrid), requantized to 8 bits. Armv8.2-A with the dot product.
 *
 *   void neon_dotprod_4x16_r<R>(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
 *                               const int32_t *offsets, const int32_t *gemm, int tiles);
 *
 * Computes `tiles` tiles of R rows (1 to 4), each times all columns. A step is four consecutive k. Columns are in blocks of 16,
 * then of 4; the last block may be partly used.
 *
 *   weights  each block [depth / 4][columns][4]
 *   params   each block [3][columns]: bias (zero points folded in), multiplier, shift (neon_requantize.h)
 *   x, y, offsets, gemm: neon_rows_asm.h
 *
 * Register blocking of a step in a block of 16: one ld1 of 64 weights, 4 * R sdot of 16 products.
 *
 *                  v4   v5   v6   v7     <- 16 columns, four weights each
 *   row 0  v0[s]  v16  v17  v18  v19
 *   row 1  v1[s]  v20  v21  v22  v23     v0 ... v3: 16 activations of a row, one load for four steps
 *   row 2  v2[s]  v24  v25  v26  v27
 *   row 3  v3[s]  v28  v29  v30  v31
 *
 * In a block of 4, one ld1 has the weights of four steps, and the first register of each row has the sums.
 */
#define tail x10        /* remainder of the depth: 0, 4, 8 or 12; k includes it */
#include "neon_rows_asm.h"

.macro load_16 argument, out, a, c0, c1, c2, c3, end
    ldr q\a, [\end, k]
.endm

.macro load_4 argument, out, a, c0, c1, c2, c3, end
    ldr s\a, [\end, k]
.endm

.macro dot_16 step, out, a, c0, c1, c2, c3, end
    sdot v\c0\().4s, v4.16b, v\a\().4b[\step]
    sdot v\c1\().4s, v5.16b, v\a\().4b[\step]
    sdot v\c2\().4s, v6.16b, v\a\().4b[\step]
    sdot v\c3\().4s, v7.16b, v\a\().4b[\step]
.endm

.macro dot_4 step, out, a, c0, c1, c2, c3, end
    .if \step == 0
    sdot v\c0\().4s, v4.16b, v\a\().4b[0]
    .elseif \step == 1
    sdot v\c0\().4s, v5.16b, v\a\().4b[1]
    .elseif \step == 2
    sdot v\c0\().4s, v6.16b, v\a\().4b[2]
    .else
    sdot v\c0\().4s, v7.16b, v\a\().4b[3]
    .endif
.endm

/* Row 0 has the bias already. */
.macro start_16 argument, out, a, c0, c1, c2, c3, end
    .if \a > 0
    mov v\c0\().16b, v16.16b
    mov v\c1\().16b, v17.16b
    mov v\c2\().16b, v18.16b
    mov v\c3\().16b, v19.16b
    .endif
.endm

.macro offset_16 argument, out, a, c0, c1, c2, c3, end
    ld1r {v\a\().4s}, [temporary], #4
    add v\c0\().4s, v\c0\().4s, v\a\().4s
    add v\c1\().4s, v\c1\().4s, v\a\().4s
    add v\c2\().4s, v\c2\().4s, v\a\().4s
    add v\c3\().4s, v\c3\().4s, v\a\().4s
.endm

.macro offset_4 argument, out, a, c0, c1, c2, c3, end
    ld1r {v\a\().4s}, [temporary], #4
    add v\c0\().4s, v\c0\().4s, v\a\().4s
.endm

.macro finish_16 argument, out, a, c0, c1, c2, c3, end
    narrow_16 v\c0, v\c1, v\c2, v\c3
    str q\c0, [\out], #16
.endm

.macro scale_16 how
    scale_rows \how, v0, v4, v16, v20, v24, v28
    scale_rows \how, v1, v5, v17, v21, v25, v29
    scale_rows \how, v2, v6, v18, v22, v26, v30
    scale_rows \how, v3, v7, v19, v23, v27, v31
.endm

.macro scale_4 how
    scale_rows \how, v0, v4, v16, v20, v24, v28
.endm

/* The sums of a block: bias and offsets, then all products. */
.macro accumulate columns_of_block
    for_rows start_\columns_of_block
    add_offsets offset_\columns_of_block
    neg k, whole
    cbz whole, 3f
2:  for_rows load_16
    .if \columns_of_block == 4
    ld1 {v4.16b-v7.16b}, [w], #64
    .endif
    .irp step, 0, 1, 2, 3
    .if \columns_of_block == 16
    ld1 {v4.16b-v7.16b}, [w], #64
    .endif
    for_rows dot_\columns_of_block, \step
    .endr
    adds k, k, #16
    b.ne 2b
3:  cmp k, tail
    b.eq 5f
4:  for_rows load_4
    .if \columns_of_block == 16
    ld1 {v4.16b-v7.16b}, [w], #64
    .else
    ldr q4, [w], #16
    .endif
    for_rows dot_\columns_of_block, 0
    add k, k, #4
    cmp k, tail
    b.ne 4b
5:
.endm

.macro gemm_4x16 count
    .set rows, \count
    enter neon_dotprod_4x16_r\count, x16
.Ltile\@:
    start_tile
    subs columns, columns, #16
    b.lt .Lfours\@

.Lsixteen\@:
    ld1 {v16.4s-v19.4s}, [p], #64
    accumulate 16
    ld1 {v0.4s-v3.4s}, [p], #64
    ld1 {v4.4s-v7.4s}, [p], #64
    by_mode scale_16
    for_rows finish_16
    subs columns, columns, #16
    b.ge .Lsixteen\@

.Lfours\@:
    adds columns, columns, #16
    b.eq .Lnext\@
.Lfour\@:
    ldr q16, [p], #16
    accumulate 4
    ldr q0, [p], #16
    ldr q4, [p], #16
    by_mode scale_4
    write_4 .Lfour\@, for_rows

.Lnext\@:
    end_tile .Ltile\@
    leave neon_dotprod_4x16_r\count
.endm

gemm_4x16 1
gemm_4x16 2
gemm_4x16 3
gemm_4x16 4

    .section .note.GNU-stack, "", %progbits
