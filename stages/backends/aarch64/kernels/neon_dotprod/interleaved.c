/* Products of interleaved rows: tiles of eight rows. If one to four rows remain, the last tile has four. */
#include <arm_neon.h>
#include <stddef.h>
#include <string.h>

#include "dotprod.h"
#include "neon_gemm.h"

typedef void tile(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                  const void *gemm, int32_t tiles, int32_t last);

tile neon_dotprod_8x12_r4, neon_dotprod_8x12_r8;

/* Number of rows in tiles of eight, of which the last may be partly used. The other rows are in one tile of four. */
static int32_t rows_by_eight(int32_t rows)
{
    return rows % 8 > 4 ? rows : rows & ~7;
}

void neon_dotprod_interleaved(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y,
                              const int32_t *offsets, int32_t has_offsets, int32_t rows, const void *gemm)
{
    const struct neon_gemm *g = gemm;
    const int32_t *sums = has_offsets ? offsets : NULL;
    const int32_t by_eight = rows_by_eight(rows);
    if (by_eight != 0) {
        neon_dotprod_8x12_r8(panel, weights, params, y, sums, gemm, (by_eight + 7) / 8, (by_eight - 1) % 8 + 1);
    }
    if (by_eight != rows) {
        neon_dotprod_8x12_r4(panel + (ptrdiff_t)by_eight * g->depth, weights, params,
                             (int8_t *)y + (ptrdiff_t)by_eight * g->y_row, sums == NULL ? NULL : sums + by_eight, gemm, 1,
                             rows - by_eight);
    }
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

/* Fewer than four rows. */
static void interleave_few(const int8_t *x, ptrdiff_t row, int32_t count, int8_t *to, ptrdiff_t step, int32_t depth)
{
    for (int32_t k = 0; k < depth; k += 4) {
        memset(to, 0, 16);
        for (int32_t i = 0; i < count; i++) {
            memcpy(to + 4 * i, x + i * row + k, 4);
        }
        to += step;
    }
}

void neon_dotprod_interleave(const int8_t *rows, int8_t *panel, int32_t count, const void *gemm)
{
    const struct neon_gemm *g = gemm;
    const int32_t by_eight = rows_by_eight(count);
    for (int32_t first = 0; first < count; first += 4) {
        const int32_t in_eight = first < by_eight;
        const int32_t within = in_eight ? first % 8 : 0;
        int8_t *to = panel + (ptrdiff_t)(first - within) * g->depth + 4 * within;
        const ptrdiff_t step = in_eight ? 32 : 16;
        if (first + 4 <= count) {
            interleave_4(rows, g->x_row, to, step, g->depth);
        } else {
            interleave_few(rows, g->x_row, count - first, to, step, g->depth);
        }
        rows += 4 * (ptrdiff_t)g->x_row;
    }
}
