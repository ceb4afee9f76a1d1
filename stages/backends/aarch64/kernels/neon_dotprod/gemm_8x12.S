/* Matrix product with interleaved rows (neon_panel_asm.h). Armv8.2-A with the dot product.
 *
 *   neon_dotprod_8x12_r<R>: tiles of R rows (8 or 4), CHUNK is 4
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
#include "neon_panel_asm.h"

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

.macro block_12
    ld1 {v8.4s-v10.4s}, [p], #48
    accumulate 12
    scale 12
    for_rows_backwards finish_12
.endm

.macro block_4 next
    ldr q8, [p], #16
    accumulate 4
    scale 4
    write_4 \next, for_rows_backwards
.endm

panel_product neon_dotprod_8x12_r4, 4
panel_product neon_dotprod_8x12_r8, 8

    .section .note.GNU-stack, "", %progbits
