/* Matrix product requantized to 8 bits. Armv8-A without the dot product.
 *
 *   void neon_4x4_r<R>[_wide](const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
 *                             const int32_t *offsets, const int32_t *gemm, int tiles);
 *
 * `tiles` tiles of R rows (1 to 4), each times all columns. Columns come in blocks of 4, the last of which may be partly in
 * use. The depth is a multiple of 8, and split into chunks of 16, the last of 8 where it is no multiple of 16.
 *
 *   x        row r is at x + r * x_row, depth bytes: nothing else of it is read
 *   weights  each block [chunks of 16][4][16], then [4][8]
 *   params   each block [3][4]: bias (zero points folded in), multiplier, shift (neon_requantize.h)
 *   y        row r starts at y + r * y_row
 *   offsets  a number to add to all sums of a row; NULL: none
 *   gemm     struct neon_gemm (neon_gemm.h)
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
 * Two products of -128 * -128 do not fit int16. Where the weights k and k + 8 of a chunk are both -128 the _wide functions are
 * needed, which widen each product on its own.
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
#define tail w10        /* what is behind it: 0 or 8 */
#define columns w11     /* left in this tile */
#define mode w12
#define w x13           /* walks through the weights */
#define p x14           /* and through the parameters */
#define k x15           /* from -whole to 0 */
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
.macro for_rows operation
    \operation end0, out0, 16, 17, 18, 19
    .if rows > 1
    \operation end1, out1, 20, 21, 22, 23
    .endif
    .if rows > 2
    \operation end2, out2, 24, 25, 26, 27
    .endif
    .if rows > 3
    \operation end3, out3, 28, 29, 30, 31
    .endif
.endm

.macro start end, out, c0, c1, c2, c3
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

.macro chunk_16 end, out, c0, c1, c2, c3
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

.macro chunk_8 end, out, c0, c1, c2, c3
    ldr d0, [\end]
    products_8 \c0, 4, 1
    products_8 \c1, 5, 2
    products_8 \c2, 6, 3
    products_8 \c3, 7, 12
.endm

/* Partial sums to one register of four columns, with the bias (v0). */
.macro gather end, out, c0, c1, c2, c3
    addp v\c0\().4s, v\c0\().4s, v\c1\().4s
    addp v\c2\().4s, v\c2\().4s, v\c3\().4s
    addp v\c0\().4s, v\c0\().4s, v\c2\().4s
    add v\c0\().4s, v\c0\().4s, v0.4s
.endm

.macro add_offset end, out, c0, c1, c2, c3
    ld1r {v3.4s}, [temporary], #4
    add v\c0\().4s, v\c0\().4s, v3.4s
.endm

.macro finish end, out, c0, c1, c2, c3
    narrow_4 v\c0
    str s\c0, [\out], #4
.endm

.macro finish_bytes end, out, c0, c1, c2, c3
    narrow_4 v\c0
    store_bytes v\c0, \out, columns, w16
.endm

.macro scale how
    .if rows == 1
    scale_channels \how, v1, v2, v16
    .elseif rows == 2
    scale_channels \how, v1, v2, v16, v20
    .elseif rows == 3
    scale_channels \how, v1, v2, v16, v20, v24
    .else
    scale_channels \how, v1, v2, v16, v20, v24, v28
    .endif
.endm

.macro gemm_4x4 count, suffix, is_wide
    .set rows, \count
    .set wide, \is_wide
    .section .text.neon_4x4_r\count\suffix, "ax"
    .balign 16
    .globl neon_4x4_r\count\suffix
    .type neon_4x4_r\count\suffix, %function
neon_4x4_r\count\suffix:
    save_vectors
    stp x19, x20, [sp, #-48]!
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    ldpsw x_row, y_row, [gemm, #NEON_GEMM_X_ROW]
    ldrsw temporary, [gemm, #NEON_GEMM_DEPTH]
    and whole, temporary, #-16
    and tail, w16, #15
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
    cbz offsets, .Lscale\@
    mov temporary, offsets
    for_rows add_offset
.Lscale\@:
    cbnz mode, 1f
    scale MODE_HALVES
    b 3f
1:  cmp mode, #MODE_ONCE
    b.eq 2f
    scale MODE_SHIFTS
    b 3f
2:  scale MODE_ONCE
3:  subs columns, columns, #4
    b.lt .Lbytes\@
    for_rows finish
    b.ne .Lblock\@
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
    cbz offsets, 4f
    add offsets, offsets, #4 * rows
4:  subs tiles, tiles, #1
    b.ne .Ltile\@

    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x19, x20, [sp], #48
    restore_vectors
    ret
    .size neon_4x4_r\count\suffix, . - neon_4x4_r\count\suffix
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
