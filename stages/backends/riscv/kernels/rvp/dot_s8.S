/* One row times all output channels, requantized to 8 bits: fully connected layers with a batch of one. RV64 and RV32,
 * P 0.9.11.
 *
 *   void rvp_dot_s8[z][s](const int32_t *panel, const int8_t *weights, const int32_t *params, void *out,
 *                         int chunks, int blocks, int clip);
 *
 * Arguments and variants are those of gemm_s8.S for one row; `blocks` is even. The weights are read once, two blocks at a time. Each
 * activation is loaded once for eight registers of weights.
 *
 *             w0   w1   w2   w3   w0   w1   w2   w3     <- block b, then block b + 1: 8 loads
 *   row 0 x | A0   A1   A2   A3   B0   B1   B2   B3     1 load, 8 smaqa of 4 * LANES MACs each
 */
#define UNROLL 8

#include "rvp_asm.h"

#define panel a0
#define weights a1
#define params a2
#define out a3
#define chunks a4
#define end a5
#define weights_end a6
#define next a7                       /* the second block's weights */
#define x ra

#define A t0, t1, t2, t3
#define B t4, t5, t6, s0
#ifdef RVP_LOADS_PAIRS                /* s2 and s4 are even */
#define w0 s2
#define w1 s3
#define w2 s4
#define w3 s5
#define W_IN_PAIRS
#define start s1                      /* the panel, minus the chunks that the entry skips */
#else
#define w0 s1
#define w1 s2
#define w2 s3
#define w3 s4
#define start s5
#endif
#define entry s6
#define skipped s7                    /* bytes of weights that the entry skips */
#define zero s8
#define upper s9
#define block_bytes s10
#define clamps s11

#define LOWEST FRAME(13)
#define HIGHEST FRAME(14)
#define FLIP FRAME(15)
#define FRAME_BYTES ((FRAME(16) + 15) & ~15)

#include "frame_asm.h"
#include "products_asm.h"
#include "requantize_asm.h"

.macro bias_of first, c0, c1, c2, c3
    LX \c0, ((\first) + 0) * REGISTER_BYTES(params)
    LX \c1, ((\first) + 1) * REGISTER_BYTES(params)
    LX \c2, ((\first) + 2) * REGISTER_BYTES(params)
    LX \c3, ((\first) + 3) * REGISTER_BYTES(params)
.endm

.macro add_offset c0, c1, c2, c3
    add32 \c0, \c0, x
    add32 \c1, \c1, x
    add32 \c2, \c2, x
    add32 \c3, \c3, x
.endm

/* Requantizes a block; its params start at register `first`. The result is in c0. */
.macro requantize first, c0, c1, c2, c3
    scale_4 params, \first + 4, \c0, \c1, \c2, \c3
    narrow_4 \c0, \c1, \c2, \c3, zero, zero, upper
.endm

.macro dot name, offsets, rounds_once
    .set single, \rounds_once
    function \name
    addi sp, sp, -FRAME_BYTES
    save EVERY_SAVED
    zero_point_of zero, a6
    upper_bytes upper
    srli t1, a6, 8
    li clamps, CLIPS_AS_INT8
    xor clamps, clamps, t1
    slli clamps, clamps, REGISTER_BYTES * 8 - 24
    keep_bounds a6

    slli block_bytes, chunks, 2 + REGISTER_SHIFT
    mul weights_end, block_bytes, a5
    add weights_end, weights_end, weights
    slli end, chunks, REGISTER_SHIFT
    add end, end, panel
    left_out t1, chunks
    slli skipped, t1, 2 + REGISTER_SHIFT
    slli start, t1, REGISTER_SHIFT
    sub start, panel, start
    li t2, (9 + 2 * LOAD_4) * 4        /* bytes of code of one chunk */
    mul t1, t1, t2
    lla entry, 3f
    add entry, entry, t1

2:  bias_of 0, A                       /* two blocks of channels */
    bias_of 12, B
    .if \offsets
    LX x, 0(end)
    add_offset A
    add_offset B
    .endif
    mv panel, start
    sub weights, weights, skipped
    add next, weights, block_bytes
    jr entry

    .option push
    .option norvc
    .balign 4
3:
    .set chunk, 0
    .rept UNROLL
    LX x, chunk * REGISTER_BYTES(panel)
    load_4 weights, chunk * 4
    multiply_4 A
    load_4 next, chunk * 4
    multiply_4 B
    .set chunk, chunk + 1
    .endr
    .option pop
    addi panel, panel, UNROLL * REGISTER_BYTES
    addi weights, weights, UNROLL * 4 * REGISTER_BYTES
    addi next, next, UNROLL * 4 * REGISTER_BYTES
    bne panel, end, 3b

    requantize 0, A
    requantize 12, B
    beqz clamps, 5f
    load_bounds w0, w1, w2
    clamp_bytes t0, w0, w1, w2
    clamp_bytes t4, w0, w1, w2
5:  SX t0, 0(out)
    SX t4, REGISTER_BYTES(out)
    addi out, out, 2 * REGISTER_BYTES
    addi params, params, 24 * REGISTER_BYTES
    mv weights, next
    bne weights, weights_end, 2b

    leave EVERY_SAVED
    end_function \name
.endm

dot rvp_dot_s8, 0, 0
dot rvp_dot_s8z, 1, 0
dot rvp_dot_s8s, 0, 1
dot rvp_dot_s8zs, 1, 1
