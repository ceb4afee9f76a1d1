/* GEMM of panels of 1 to 5 rows with all output channels, requantized to 8 bits. RV64 and RV32, P draft 0.9.11.
 *
 *   void rvp_gemm_s8_r<R>[z][s](const int32_t *panel, const int8_t *weights, const int32_t *params, void *out,
 *                               int chunks, int blocks, int stride, int clip, int panels);
 *
 * A chunk is four consecutive k. A register has LANES lanes of 32 bits: 2 on RV64, 1 on RV32. A block is 4 * LANES
 * output channels; register j holds channel {0, 2, 1, 3}[j] of the block in its lower lane and that channel + 4 in its
 * upper lane, which is the order in which the epilogue's packing leaves them in memory.
 *
 *   panel    [panels][chunks][R] registers: row r's four activations, repeated in every lane
 *   weights  [blocks][chunks][4] registers: four weights of each lane's channel
 *   params   [blocks][3][4] registers: bias (zero points folded in), multiplier, rounder (packing.py). If the first rounder is 0,
 *            sums are rounded by one multiplication, and the second and third rounders are the zero points of narrow_4
 *   out      rows are `stride` bytes apart and written block by block, 4 * LANES bytes at once
 *   clip     the clip word of requantize_asm.h
 *
 * Register blocking, one chunk: 4 + R loads for 4 * R smaqa, each 4 * LANES MACs.
 *
 *              w0   w1   w2   w3     <- weights, 4 loads
 *   row 0  x | A00  A01  A02  A03
 *   row 1  x | A10  A11  A12  A13    x: one load per row, used four times
 *   ...      |
 *   row 4  x | A40  A41  A42  A43    20 accumulators + 4 + 1 + panel, weights, end = 28 registers: all but sp, gp, tp
 *
 * The z variants read R more registers after the panel: an offset for each row, repeated in every lane, which is added to the row's
 * accumulators (the term of the weights' zero point). The s variants round once instead of twice (fully connected layers).
 *
 * The chunk loop is unrolled by UNROLL and entered in the middle, so that any number of chunks costs the same.
 */
#define UNROLL 8

#define panel a0
#define weights a1
#define end a2
#define x a3
#define w0 a4
#define w1 a5
#define w2 a6
#define w3 a7
#define W_IN_PAIRS

#define ROW0 t0, t1, t2, t3
#define ROW1 t4, t5, t6, ra
#define ROW2 s0, s1, s2, s3
#define ROW3 s4, s5, s6, s7
#define ROW4 s8, s9, s10, s11

/* The frame: 13 saved registers, then values that the block loop cannot keep in registers. */
#define PANEL FRAME(13)               /* panel's first chunk, minus the chunks that the entry skips */
#define ENTRY FRAME(14)               /* where the unrolled loop is entered */
#define SKIPPED FRAME(15)             /* bytes of weights that the entry skips */
#define PARAMS FRAME(16)
#define OUT FRAME(17)
#define STRIDE FRAME(18)
#define WEIGHTS_END FRAME(19)
#define ZERO_POINT FRAME(20)          /* in every 16-bit lane */
#define CLAMPS FRAME(21)              /* whether the next three are needed */
#define LOWEST FRAME(22)              /* in every byte */
#define HIGHEST FRAME(23)
#define FLIP FRAME(24)
#define UPPER_BYTES FRAME(25)         /* 0xff00 in every 16-bit lane */
#define WEIGHTS FRAME(26)             /* initial values of each panel */
#define FIRST_PARAMS FRAME(27)
#define FIRST_OUT FRAME(28)
#define PANELS FRAME(29)              /* left to do */
#define PANEL_BYTES FRAME(30)
#define FRAME_BYTES ((FRAME(31) + 15) & ~15)

#include "frame_asm.h"
#include "products_asm.h"
#include "requantize_asm.h"

/* `step` for each row in use, with the row's accumulators and its number. Row 0 comes last: it holds the bias at first.
 */
.macro for_rows step
    .if rows > 4
    \step ROW4, 4
    .endif
    .if rows > 3
    \step ROW3, 3
    .endif
    .if rows > 2
    \step ROW2, 2
    .endif
    .if rows > 1
    \step ROW1, 1
    .endif
    \step ROW0, 0
.endm

.macro start_from_bias c0, c1, c2, c3, row
    .if \row > 0
    mv \c0, t0
    mv \c1, t1
    mv \c2, t2
    mv \c3, t3
    .endif
.endm

.macro start_from_bias_and_offset c0, c1, c2, c3, row
    LX w1, \row * REGISTER_BYTES(end)
    add32 \c0, t0, w1
    add32 \c1, t1, w1
    add32 \c2, t2, w1
    add32 \c3, t3, w1
.endm

.macro multiply_accumulate c0, c1, c2, c3, row
    LX x, (chunk * rows + \row) * REGISTER_BYTES(panel)
    multiply_4 \c0, \c1, \c2, \c3
.endm

.macro narrow c0, c1, c2, c3, row
    narrow_4 \c0, \c1, \c2, \c3, w0, w1, w2
.endm

.macro clamp c0, c1, c2, c3, row
    clamp_bytes \c0, w1, w2, w3
.endm

.macro write c0, c1, c2, c3, row         /* from the last row up */
    SX \c0, 0(x)
    .if \row > 0
    sub x, x, w1
    .endif
.endm

.macro gemm name, row_count, offsets, rounds_once
    .set rows, \row_count
    .set single, \rounds_once
    function \name
    LX t0, 0(sp)                       /* the ninth argument */
    addi sp, sp, -FRAME_BYTES
    SX t0, PANELS(sp)
    save EVERY_SAVED
    SX a2, PARAMS(sp)
    SX a2, FIRST_PARAMS(sp)
    SX weights, WEIGHTS(sp)
    li t0, rows - 1                    /* where the last row of the output starts */
    mul t0, t0, a6
    add t0, t0, a3
    SX t0, OUT(sp)
    SX t0, FIRST_OUT(sp)
    SX a6, STRIDE(sp)

    zero_point_of t0, a7
    SX t0, ZERO_POINT(sp)
    upper_bytes t0
    SX t0, UPPER_BYTES(sp)
    srli t1, a7, 8
    li t2, CLIPS_AS_INT8
    xor t2, t1, t2
    slli t2, t2, REGISTER_BYTES * 8 - 24
    SX t2, CLAMPS(sp)
    beqz t2, 1f
    keep_bounds a7
1:
    mul t0, a4, a5                     /* where the weights end */
    slli t0, t0, 2 + REGISTER_SHIFT
    add t0, t0, weights
    SX t0, WEIGHTS_END(sp)
    left_out t1, a4
    slli t2, t1, 2 + REGISTER_SHIFT
    SX t2, SKIPPED(sp)
    li t2, rows * REGISTER_BYTES
    mul t3, a4, t2
    add end, panel, t3
    .if \offsets
    add t3, t3, t2
    .endif
    SX t3, PANEL_BYTES(sp)
    mul t2, t1, t2
    sub panel, panel, t2
    SX panel, PANEL(sp)
    li t2, (LOAD_4 + 5 * rows) * 4          /* bytes of code of one chunk */
    mul t1, t1, t2
    lla t0, 3f
    add t0, t0, t1
    SX t0, ENTRY(sp)

2:  LX w0, PARAMS(sp)                  /* a block of channels */
    LX t0, 0 * REGISTER_BYTES(w0)
    LX t1, 1 * REGISTER_BYTES(w0)
    LX t2, 2 * REGISTER_BYTES(w0)
    LX t3, 3 * REGISTER_BYTES(w0)
    LX w2, SKIPPED(sp)
    LX panel, PANEL(sp)
    .if \offsets
    for_rows start_from_bias_and_offset
    .else
    for_rows start_from_bias
    .endif
    LX w3, ENTRY(sp)
    sub weights, weights, w2
    jr w3

    .option push
    .option norvc
    .balign 4
3:
    .set chunk, 0
    .rept UNROLL
    load_4 weights, chunk * 4
    for_rows multiply_accumulate
    .set chunk, chunk + 1
    .endr
    .option pop
    addi panel, panel, UNROLL * rows * REGISTER_BYTES
    addi weights, weights, UNROLL * 4 * REGISTER_BYTES
    bne panel, end, 3b

    LX panel, PARAMS(sp)
    load_4 panel, 4
    LX x, 8 * REGISTER_BYTES(panel)
    bnez x, 6f
    for_rows round_4
    LX w0, 9 * REGISTER_BYTES(panel)
    LX w1, 10 * REGISTER_BYTES(panel)
4:  addi panel, panel, 12 * REGISTER_BYTES
    SX panel, PARAMS(sp)
    LX w2, UPPER_BYTES(sp)
    LX panel, CLAMPS(sp)
    for_rows narrow
    beqz panel, 5f
    load_bounds w1, w2, w3
    for_rows clamp
5:  LX x, OUT(sp)
    .if rows > 1
    LX w1, STRIDE(sp)
    .endif
    addi w2, x, REGISTER_BYTES
    SX w2, OUT(sp)
    for_rows write
    LX w0, WEIGHTS_END(sp)
    bne weights, w0, 2b

    LX t0, PANELS(sp)
    addi t0, t0, -1
    beqz t0, 7f
    SX t0, PANELS(sp)
    LX t0, PANEL_BYTES(sp)
    LX t1, PANEL(sp)
    LX t2, FIRST_OUT(sp)
    LX t3, STRIDE(sp)
    li t4, rows
    mul t3, t3, t4
    add t2, t2, t3
    add t1, t1, t0
    add end, end, t0
    LX t0, FIRST_PARAMS(sp)
    LX weights, WEIGHTS(sp)
    SX t2, FIRST_OUT(sp)
    SX t2, OUT(sp)
    SX t1, PANEL(sp)
    SX t0, PARAMS(sp)
    j 2b

7:
    leave EVERY_SAVED

6:  for_rows high_multiply_4
    load_4 panel, 8
    bltz w0, 9f                        /* the sign of the first rounder marks a wide block */
    for_rows round_4
8:  LX w0, ZERO_POINT(sp)
    mv w1, w0
    j 4b

9:  without_mark w0
    for_rows round_wide_4
    j 8b
    end_function \name
.endm

.irp r, 1, 2, 3, 4, 5
gemm rvp_gemm_s8_r\r, \r, 0, 0
gemm rvp_gemm_s8_r\r\()z, \r, 1, 0
gemm rvp_gemm_s8_r\r\()s, \r, 0, 1
gemm rvp_gemm_s8_r\r\()zs, \r, 1, 1
.endr
