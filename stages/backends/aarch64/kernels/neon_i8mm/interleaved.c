/* Panels of rows for gemm_8x12.S, and their products. */
#include "i8mm.h"
#include "neon_panel.h"

neon_panel_tiles neon_i8mm_8x12_r4, neon_i8mm_8x12_r8;

void neon_i8mm_interleaved(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                           int32_t has_offsets, int32_t rows, const void *gemm)
{
    neon_panel_product(neon_i8mm_8x12_r4, neon_i8mm_8x12_r8, panel, weights, params, y, has_offsets ? offsets : NULL, rows, gemm);
}

static inline int64x2_t load(const int8_t *x)
{
    return vreinterpretq_s64_s8(vld1q_s8(x));
}

/* Eight bytes of each row in turn, of k to k + 7, then of the next eight. */
static inline void store_pair(int8_t *to, ptrdiff_t step, int64x2_t first, int64x2_t second)
{
    vst1q_s8(to, vreinterpretq_s8_s64(vzip1q_s64(first, second)));
    vst1q_s8(to + step, vreinterpretq_s8_s64(vzip2q_s64(first, second)));
}

static void interleave_4(const int8_t *x, ptrdiff_t row, int8_t *to, ptrdiff_t step, int32_t depth)
{
    for (; depth >= 16; depth -= 16) {
        store_pair(to, step, load(x), load(x + row));
        store_pair(to + 16, step, load(x + 2 * row), load(x + 3 * row));
        x += 16;
        to += 2 * step;
    }
    if (depth != 0) {
        neon_interleave_few(x, row, 4, to, step, 8, 8);
    }
}

void neon_i8mm_interleave(const int8_t *rows, int8_t *panel, int32_t count, const void *gemm)
{
    neon_interleave_panel(interleave_4, 8, rows, panel, count, gemm);
}
