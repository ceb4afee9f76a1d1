/* Matrix product with rows in their native form (hybrid), requantized to 8 bits. Armv8.2-A with the dot product.
 *
 *   void neon_dotprod_4x16_r<R>(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
 *                               const int32_t *offsets, const int32_t *gemm, int tiles);
 *
 * `tiles` tiles of R rows (1 to 4), each times all columns. A step is four consecutive k. Columns come in blocks of 16, then
 * of 4, the last of which may be partly in use.
 *
 *   x        row r is at x + r * x_row, depth bytes: nothing else of it is read
 *   weights  each block [depth / 4][columns][4]
 *   params   each block [3][columns]: bias (zero points folded in), multiplier, shift (neon_requantize.h)
 *   y        row r starts at y + r * y_row
 *   offsets  a number to add to all sums of a row; NULL: none
 *   gemm     struct neon_gemm (neon_gemm.h)
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
#include "neon_gemm.h"
#define SCRATCH0 v12
#define SCRATCH1 v13
#define SCRATCH2 v14
#define SCRATCH3 v15
#define ZERO_POINT v8
#define LOW v9
#define HIGH v10
#define FLIP v11
#include "neon_requantize.h"

#define weights x1
#define params x2
#define offsets x4
#define gemm x5
#define tiles w6
#define x_row x7
#define y_row x8
#define whole x9        /* the multiple of 16 in the depth */
#define tail x10        /* what is behind it: 0, 4, 8 or 12 */
#define columns w11     /* left in this tile */
#define mode w12
#define w x13           /* walks through the weights */
#define p x14           /* and through the parameters */
#define k x15           /* from -whole to 0, then to tail */
#define temporary x16
/* Where the whole part of each row ends, and its output */
#define end0 x0
#define end1 x19
#define end2 x20
#define end3 x21
#define out0 x3
#define out1 x22
#define out2 x23
#define out3 x24

/* `operation` for each row in use: its end, output, and the numbers of its registers. */
.macro for_rows operation, argument=0
    \operation \argument, end0, out0, 0, 16, 17, 18, 19
    .if rows > 1
    \operation \argument, end1, out1, 1, 20, 21, 22, 23
    .endif
    .if rows > 2
    \operation \argument, end2, out2, 2, 24, 25, 26, 27
    .endif
    .if rows > 3
    \operation \argument, end3, out3, 3, 28, 29, 30, 31
    .endif
.endm

.macro load_16 argument, end, out, a, c0, c1, c2, c3
    ldr q\a, [\end, k]
.endm

.macro load_4 argument, end, out, a, c0, c1, c2, c3
    ldr s\a, [\end, k]
.endm

.macro dot_16 step, end, out, a, c0, c1, c2, c3
    sdot v\c0\().4s, v4.16b, v\a\().4b[\step]
    sdot v\c1\().4s, v5.16b, v\a\().4b[\step]
    sdot v\c2\().4s, v6.16b, v\a\().4b[\step]
    sdot v\c3\().4s, v7.16b, v\a\().4b[\step]
.endm

.macro dot_4 step, end, out, a, c0, c1, c2, c3
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
.macro start_16 argument, end, out, a, c0, c1, c2, c3
    .if \a > 0
    mov v\c0\().16b, v16.16b
    mov v\c1\().16b, v17.16b
    mov v\c2\().16b, v18.16b
    mov v\c3\().16b, v19.16b
    .endif
.endm

.macro start_4 argument, end, out, a, c0, c1, c2, c3
    .if \a > 0
    mov v\c0\().16b, v16.16b
    .endif
.endm

.macro offset_16 argument, end, out, a, c0, c1, c2, c3
    ld1r {v\a\().4s}, [temporary], #4
    add v\c0\().4s, v\c0\().4s, v\a\().4s
    add v\c1\().4s, v\c1\().4s, v\a\().4s
    add v\c2\().4s, v\c2\().4s, v\a\().4s
    add v\c3\().4s, v\c3\().4s, v\a\().4s
.endm

.macro offset_4 argument, end, out, a, c0, c1, c2, c3
    ld1r {v\a\().4s}, [temporary], #4
    add v\c0\().4s, v\c0\().4s, v\a\().4s
.endm

.macro finish_16 argument, end, out, a, c0, c1, c2, c3
    narrow_16 v\c0, v\c1, v\c2, v\c3
    str q\c0, [\out], #16
.endm

.macro finish_4 argument, end, out, a, c0, c1, c2, c3
    narrow_4 v\c0
    str s\c0, [\out], #4
.endm

.macro finish_bytes argument, end, out, a, c0, c1, c2, c3
    narrow_4 v\c0
    store_bytes v\c0, \out, columns, w16
.endm

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
    cbz offsets, 1f
    mov temporary, offsets
    for_rows offset_\columns_of_block
1:  neg k, whole
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

.macro scale columns_of_block
    cbnz mode, 1f
    scale_\columns_of_block MODE_HALVES
    b 3f
1:  cmp mode, #MODE_ONCE
    b.eq 2f
    scale_\columns_of_block MODE_SHIFTS
    b 3f
2:  scale_\columns_of_block MODE_ONCE
3:
.endm

.macro gemm_4x16 count
    .set rows, \count
    .section .text.neon_dotprod_4x16_r\count, "ax"
    .balign 16
    .globl neon_dotprod_4x16_r\count
    .type neon_dotprod_4x16_r\count, %function
neon_dotprod_4x16_r\count:
    save_vectors
    stp x19, x20, [sp, #-48]!
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    ldpsw x_row, y_row, [gemm, #NEON_GEMM_X_ROW]
    ldrsw temporary, [gemm, #NEON_GEMM_DEPTH]
    and whole, temporary, #-16
    and tail, temporary, #15
    ldr mode, [gemm, #NEON_GEMM_MODE]
    ld1 {v8.16b-v11.16b}, [gemm]    /* ZERO_POINT, LOW, HIGH, FLIP */
    add end0, end0, whole

.Ltile\@:
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
    subs columns, columns, #16
    b.lt .Lfours\@

.Lsixteen\@:
    ld1 {v16.4s-v19.4s}, [p], #64
    accumulate 16
    ld1 {v0.4s-v3.4s}, [p], #64
    ld1 {v4.4s-v7.4s}, [p], #64
    scale 16
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
    scale 4
    subs columns, columns, #4
    b.lt .Lbytes\@
    for_rows finish_4
    b.ne .Lfour\@
    b .Lnext\@
.Lbytes\@:
    add columns, columns, #4
    for_rows finish_bytes

.Lnext\@:
    ldr columns, [gemm, #NEON_GEMM_COLUMNS]
    sub out0, out0, columns, sxtw
    .rept rows
    add end0, end0, x_row
    add out0, out0, y_row
    .endr
    cbz offsets, 1f
    add offsets, offsets, #4 * rows
1:  subs tiles, tiles, #1
    b.ne .Ltile\@

    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x19, x20, [sp], #48
    restore_vectors
    ret
    .size neon_dotprod_4x16_r\count, . - neon_dotprod_4x16_r\count
.endm

gemm_4x16 1
gemm_4x16 2
gemm_4x16 3
gemm_4x16 4

    .section .note.GNU-stack, "", %progbits
