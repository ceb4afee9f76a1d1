/* Panels of rows for gemm_8x12.S, and their products. */
#include "i8mm.h"
#include "neon_panel.h"

neon_panel_tiles neon_i8mm_8x12_r4, neon_i8mm_8x12_r8;

void neon_i8mm_interleaved(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                           int32_t has_offsets, int32_t rows, const void *gemm)
{
    neon_panel_product(neon_i8mm_8x12_r4, neon_i8mm_8x12_r8, panel, weights, params, y, has_offsets ? offsets : NULL, rows, gemm);
}

/* Eight bytes of each of four rows, of k to k + 7, then of the next eight. */
static inline void store_four(int8_t *to, ptrdiff_t step, int8x16_t r0, int8x16_t r1, int8x16_t r2, int8x16_t r3)
{
    const int64x2_t a = vreinterpretq_s64_s8(r0), b = vreinterpretq_s64_s8(r1);
    const int64x2_t c = vreinterpretq_s64_s8(r2), d = vreinterpretq_s64_s8(r3);
    vst1q_s8(to, vreinterpretq_s8_s64(vzip1q_s64(a, b)));
    vst1q_s8(to + 16, vreinterpretq_s8_s64(vzip1q_s64(c, d)));
    vst1q_s8(to + step, vreinterpretq_s8_s64(vzip2q_s64(a, b)));
    vst1q_s8(to + step + 16, vreinterpretq_s8_s64(vzip2q_s64(c, d)));
}

static void interleave_4(const int8_t *x, ptrdiff_t row, int8_t *to, ptrdiff_t step, int32_t depth)
{
    const int8_t *x1 = x + row, *x2 = x1 + row, *x3 = x2 + row;
    for (; depth >= 32; depth -= 32) {
        const int8x16x2_t r0 = vld1q_s8_x2(x), r1 = vld1q_s8_x2(x1), r2 = vld1q_s8_x2(x2), r3 = vld1q_s8_x2(x3);
        store_four(to, step, r0.val[0], r1.val[0], r2.val[0], r3.val[0]);
        store_four(to + 2 * step, step, r0.val[1], r1.val[1], r2.val[1], r3.val[1]);
        x += 32;
        x1 += 32;
        x2 += 32;
        x3 += 32;
        to += 4 * step;
    }
    if (depth >= 16) {
        store_four(to, step, vld1q_s8(x), vld1q_s8(x1), vld1q_s8(x2), vld1q_s8(x3));
        x += 16;
        to += 2 * step;
        depth -= 16;
    }
    if (depth != 0) {
        neon_interleave_few(x, row, 4, to, step, 8, 8);
    }
}

void neon_i8mm_interleave(const int8_t *rows, int8_t *panel, int32_t count, const void *gemm)
{
    neon_interleave_panel(interleave_4, 8, rows, panel, count, gemm);
}
