/* Panels of rows for gemm_8x12.S, and their products. */
#include "dotprod.h"
#include "neon_panel.h"

neon_panel_tiles neon_dotprod_8x12_r4, neon_dotprod_8x12_r8;

void neon_dotprod_interleaved(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y,
                              const int32_t *offsets, int32_t has_offsets, int32_t rows, const void *gemm)
{
    neon_panel_product(neon_dotprod_8x12_r4, neon_dotprod_8x12_r8, panel, weights, params, y, has_offsets ? offsets : NULL, rows,
                       gemm);
}

struct four {
    int32x4_t r0, r1, r2, r3;
};

/* Transposes four rows of four. */
static inline struct four transpose(struct four x)
{
    const int64x2_t a = vreinterpretq_s64_s32(vtrn1q_s32(x.r0, x.r1)), b = vreinterpretq_s64_s32(vtrn2q_s32(x.r0, x.r1));
    const int64x2_t c = vreinterpretq_s64_s32(vtrn1q_s32(x.r2, x.r3)), d = vreinterpretq_s64_s32(vtrn2q_s32(x.r2, x.r3));
    return (struct four){vreinterpretq_s32_s64(vtrn1q_s64(a, c)), vreinterpretq_s32_s64(vtrn1q_s64(b, d)),
                         vreinterpretq_s32_s64(vtrn2q_s64(a, c)), vreinterpretq_s32_s64(vtrn2q_s64(b, d))};
}

static inline int32x4_t load(const int8_t *x)
{
    return vreinterpretq_s32_s8(vld1q_s8(x));
}

static inline void store(int8_t *to, int32x4_t x)
{
    vst1q_s8(to, vreinterpretq_s8_s32(x));
}

/* Interleaves four rows, four bytes at a time. In the panel, these groups are `step` bytes apart. */
static void interleave_4(const int8_t *x, ptrdiff_t row, int8_t *to, ptrdiff_t step, int32_t depth)
{
    int32_t k = 0;
    for (; k + 16 <= depth; k += 16) {
        const struct four y = transpose((struct four){load(x), load(x + row), load(x + 2 * row), load(x + 3 * row)});
        store(to, y.r0);
        store(to + step, y.r1);
        store(to + 2 * step, y.r2);
        store(to + 3 * step, y.r3);
        x += 16;
        to += 4 * step;
    }
    for (; k < depth; k += 4) {
        memcpy(to, x, 4);
        memcpy(to + 4, x + row, 4);
        memcpy(to + 8, x + 2 * row, 4);
        memcpy(to + 12, x + 3 * row, 4);
        x += 4;
        to += step;
    }
}

void neon_dotprod_interleave(const int8_t *rows, int8_t *panel, int32_t count, const void *gemm)
{
    neon_interleave_panel(interleave_4, 4, rows, panel, count, gemm);
}
