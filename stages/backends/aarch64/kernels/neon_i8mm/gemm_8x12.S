/* Matrix product with interleaved rows (neon_panel_asm.h). Armv8.2-A with the 8-bit matrix product (FEAT_I8MM).
 *
 *   neon_i8mm_8x12_r<R>: tiles of R rows (8 or 4), CHUNK is 8
 *
 * gemm->mode is MODE_ of neon_requantize.h, plus a bit if low or high is not that of int8, and a bit if bytes are flipped.
 *
 * Register blocking of a step in a block of 12. smmla multiplies 2 x 8 activations by 8 x 2 weights: 24 of them for 768 products.
 *
 *   column pair   v4   v5   v6   v7   v4   v5     <- two columns, eight weights each
 *   rows 0, 1 v0   v8   v9  v10  v11  v12  v13
 *   rows 2, 3 v1  v14  v15  v16  v17  v18  v19    a register of sums: row 0 column 0, row 0 column 1,
 *   rows 4, 5 v2  v20  v21  v22  v23  v24  v25                        row 1 column 0, row 1 column 1
 *   rows 6, 7 v3  v26  v27  v28  v29  v30  v31
 *
 * Bias, multiplier and shift of a column pair are loaded for both rows (ld2r, ld4r). Results become rows as bytes.
 */
#include "neon_panel_asm.h"

#define CLIPS 2         /* numbers of the bits of mode */
#define FLIPS 3

/* `operation` for each pair of rows, with its sums. */
.macro for_pairs operation
    \operation 8, 9, 10, 11, 12, 13
    \operation 14, 15, 16, 17, 18, 19
    .if rows == 8
    \operation 20, 21, 22, 23, 24, 25
    \operation 26, 27, 28, 29, 30, 31
    .endif
.endm

/* `store` for each row, from the last to the first: its output and the register of its results. */
.macro for_rows_backwards store
    .if rows == 8
    \store out7, 28
    \store out6, 27
    \store out5, 22
    \store out4, 21
    .endif
    \store out3, 16
    \store out2, 15
    \store out1, 10
    \store out0, 9
.endm

.macro bias_12 c0, c1, c2, c3, c4, c5
    ld4r {v\c0\().2d-v\c3\().2d}, [p]
    ld2r {v\c4\().2d, v\c5\().2d}, [temporary]
.endm

.macro bias_4 c0, c1, others:vararg
    ld2r {v\c0\().2d, v\c1\().2d}, [p]
.endm

/* The sums start with bias and offset, where v0 ... v5 have the bias. */
.macro offset_4 c0, c1, others:vararg
    ldr d6, [temporary], #8
    zip1 v6.4s, v6.4s, v6.4s
    add v\c0\().4s, v0.4s, v6.4s
    add v\c1\().4s, v1.4s, v6.4s
.endm

.macro offset_12 c0, c1, c2, c3, c4, c5
    offset_4 \c0, \c1
    add v\c2\().4s, v2.4s, v6.4s
    add v\c3\().4s, v3.4s, v6.4s
    add v\c4\().4s, v4.4s, v6.4s
    add v\c5\().4s, v5.4s, v6.4s
.endm

/* Products of the weights in v\w with all rows. */
.macro times w, c0, c1, c2, c3
    smmla v\c0\().4s, v0.16b, v\w\().16b
    smmla v\c1\().4s, v1.16b, v\w\().16b
    .if rows == 8
    smmla v\c2\().4s, v2.16b, v\w\().16b
    smmla v\c3\().4s, v3.16b, v\w\().16b
    .endif
.endm

.macro load_rows
    .if rows == 8
    ld1 {v0.16b-v3.16b}, [a], #64
    .else
    ld1 {v0.16b-v1.16b}, [a], #32
    .endif
.endm

/* A step, and two. Two load the weights in three instructions. */
.macro step_12
    load_rows
    ld1 {v4.16b-v7.16b}, [w], #64
    times 4, 8, 14, 20, 26
    times 5, 9, 15, 21, 27
    times 6, 10, 16, 22, 28
    times 7, 11, 17, 23, 29
    ld1 {v4.16b-v5.16b}, [w], #32
    times 4, 12, 18, 24, 30
    times 5, 13, 19, 25, 31
.endm

.macro steps_12
    load_rows
    ld1 {v4.16b-v7.16b}, [w], #64
    times 4, 8, 14, 20, 26
    times 5, 9, 15, 21, 27
    times 6, 10, 16, 22, 28
    times 7, 11, 17, 23, 29
    ld1 {v4.16b-v7.16b}, [w], #64
    times 4, 12, 18, 24, 30
    times 5, 13, 19, 25, 31
    load_rows
    times 6, 8, 14, 20, 26
    times 7, 9, 15, 21, 27
    ld1 {v4.16b-v7.16b}, [w], #64
    times 4, 10, 16, 22, 28
    times 5, 11, 17, 23, 29
    times 6, 12, 18, 24, 30
    times 7, 13, 19, 25, 31
.endm

.macro step_4
    load_rows
    ld1 {v4.16b-v5.16b}, [w], #32
    times 4, 8, 14, 20, 26
    times 5, 9, 15, 21, 27
.endm

.macro steps_4
    load_rows
    ld1 {v4.16b-v7.16b}, [w], #64
    times 4, 8, 14, 20, 26
    times 5, 9, 15, 21, 27
    load_rows
    times 6, 8, 14, 20, 26
    times 7, 9, 15, 21, 27
.endm

/* The sums of a block: bias and offsets, then all products. Advances p to the multipliers. */
.macro accumulate columns_of_block
    add temporary, p, #32
    cbz offsets, 1f
    bias_\columns_of_block 0, 1, 2, 3, 4, 5
    mov temporary, offsets
    for_pairs offset_\columns_of_block
    b 2f
1:  for_pairs bias_\columns_of_block
2:  add p, p, #4 * \columns_of_block
    mov a, panel
    lsr steps, depth, #5
    cbz steps, 4f
3:  steps_\columns_of_block
    steps_\columns_of_block
    subs steps, steps, #1
    b.ne 3b
4:  tbz depth, #4, 5f
    steps_\columns_of_block
5:  tbz depth, #3, 6f
    step_\columns_of_block
6:
.endm

/* Two column pairs; `temporary` walks through the shifts. */
.macro scale_pairs how, c0, c1, c2, c3, d0, d1, d2, d3
    ld2r {v0.2d, v1.2d}, [p], #16
    ld2r {v6.2d, v7.2d}, [temporary], #16
    .if rows == 8
    scale_channels \how, v0, v6, v\c0, v\c1, v\c2, v\c3
    scale_channels \how, v1, v7, v\d0, v\d1, v\d2, v\d3
    .else
    scale_channels \how, v0, v6, v\c0, v\c1
    scale_channels \how, v1, v7, v\d0, v\d1
    .endif
.endm

.macro scale_4 how
    scale_pairs \how, 8, 14, 20, 26, 9, 15, 21, 27
.endm

.macro scale_12 how
    scale_4 \how
    scale_pairs \how, 10, 16, 22, 28, 11, 17, 23, 29
    scale_pairs \how, 12, 18, 24, 30, 13, 19, 25, 31
.endm

/* Scales sums in the mode `mode`, without its bits. */
.macro by_modes scale
    and steps, mode, #(1 << CLIPS) - 1
    cmp steps, #MODE_ONCE
    b.ls 1f
    \scale MODE_POSITIVE
    b 4f
1:  b.eq 3f
    cbnz steps, 2f
    \scale MODE_HALVES
    b 4f
2:  \scale MODE_SHIFTS
    b 4f
3:  \scale MODE_ONCE
4:
.endm

/* The bytes of both rows in turns, two at a time, in c0 and c4; then those of the first row in c1, of the second in c2. */
.macro bytes_12 c0, c1, c2, c3, c4, c5
    sqxtn v\c0\().4h, v\c0\().4s
    sqxtn2 v\c0\().8h, v\c1\().4s
    sqxtn v\c2\().4h, v\c2\().4s
    sqxtn2 v\c2\().8h, v\c3\().4s
    sqxtn v\c4\().4h, v\c4\().4s
    sqxtn2 v\c4\().8h, v\c5\().4s
    sqadd v\c0\().8h, v\c0\().8h, ZERO_POINT.8h
    sqadd v\c2\().8h, v\c2\().8h, ZERO_POINT.8h
    sqadd v\c4\().8h, v\c4\().8h, ZERO_POINT.8h
    sqxtn v\c0\().8b, v\c0\().8h
    sqxtn2 v\c0\().16b, v\c2\().8h
    sqxtn v\c4\().8b, v\c4\().8h
    uzp1 v\c1\().8h, v\c0\().8h, v\c4\().8h
    uzp2 v\c2\().8h, v\c0\().8h, v\c4\().8h
.endm

.macro bytes_4 c0, c1, c2, others:vararg
    sqxtn v\c0\().4h, v\c0\().4s
    sqxtn2 v\c0\().8h, v\c1\().4s
    sqadd v\c0\().8h, v\c0\().8h, ZERO_POINT.8h
    sqxtn v\c0\().8b, v\c0\().8h
    uzp1 v\c1\().4h, v\c0\().4h, v\c0\().4h
    uzp2 v\c2\().4h, v\c0\().4h, v\c0\().4h
.endm

.macro clip c0, c1, c2, others:vararg
    smax v\c1\().16b, v\c1\().16b, LOW.16b
    smax v\c2\().16b, v\c2\().16b, LOW.16b
    smin v\c1\().16b, v\c1\().16b, HIGH.16b
    smin v\c2\().16b, v\c2\().16b, HIGH.16b
.endm

.macro flip c0, c1, c2, others:vararg
    eor v\c1\().16b, v\c1\().16b, FLIP.16b
    eor v\c2\().16b, v\c2\().16b, FLIP.16b
.endm

/* The results of a block, from its sums. */
.macro finish columns_of_block
    add temporary, p, #4 * \columns_of_block
    by_modes scale_\columns_of_block
    mov p, temporary
    ld1 {v0.16b-v3.16b}, [gemm]     /* ZERO_POINT, LOW, HIGH, FLIP */
    for_pairs bytes_\columns_of_block
    tbz mode, #CLIPS, 1f
    for_pairs clip
1:  tbz mode, #FLIPS, 2f
    for_pairs flip
2:
.endm

/* `store_16` also writes where the next four columns follow. */
.macro store_16 out, row
    str q\row, [\out], #12
.endm

.macro store_12 out, row
    str d\row, [\out], #8
    st1 {v\row\().s}[2], [\out], #4
.endm

.macro store_4 out, row
    str s\row, [\out], #4
.endm

.macro store_rest out, row
    store_bytes v\row, \out, columns, w16
.endm

.macro block_12
    accumulate 12
    finish 12
    cmp columns, #4
    b.lt 1f
    for_rows_backwards store_16
    b 2f
1:  for_rows_backwards store_12
2:
.endm

.macro block_4 next
    accumulate 4
    finish 4
    write_4 \next, for_rows_backwards, store_4, store_rest
.endm

panel_product neon_i8mm_8x12_r4, 4
panel_product neon_i8mm_8x12_r8, 8

    .section .note.GNU-stack, "", %progbits
