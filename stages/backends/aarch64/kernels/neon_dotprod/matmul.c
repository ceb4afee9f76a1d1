/* Products of two matrices with the dot product: tiles of 4 rows times 8 units. Four elements of the depth: 3 loads for 8 sdot. */
#include "matmul.h"

#include <stdbool.h>

#include "neon_matmul.h"

#define MM_ROWS 4
#define MM_UNITS 8
#define MM_CHUNK 4
typedef int8_t mm_element;

NEON_INLINE void mm_chunk(int8_t *to, const int8_t *from, int32_t less)
{
    (void)less;
    __builtin_memcpy(to, from, 4);
}

NEON_INLINE bool mm_columns(int8_t *to, const int8_t *from, int32_t step, int32_t less)
{
    (void)less;
    const int8x8x4_t rows = {{vld1_s8(from), vld1_s8(from + step), vld1_s8(from + 2 * step), vld1_s8(from + 3 * step)}};
    vst4_s8(to, rows);
    return true;
}

NEON_INLINE void mm_sums(const int8_t *packed, int32_t group, int32_t chunks, int32_t *sums)
{
    for (int32_t v = 0; v < group; v += 4) {
        const int8_t *at = packed + 4 * v;
        int32x4_t sum = vdupq_n_s32(0);
        for (int32_t c = 0; c < chunks; c++) {
            sum = vdotq_s32(sum, vld1q_s8(at), vdupq_n_s8(1));
            at += 4 * group;
        }
        vst1q_s32(sums + v, sum);
    }
}

#define TIMES(row, lane)                                  \
    row.low = vdotq_laneq_s32(row.low, first, four, lane); \
    row.high = vdotq_laneq_s32(row.high, second, four, lane);

NEON_INLINE void mm_tile(const int8_t *x, const int8_t *w, int32_t chunks, int32_t *sums, int32_t pitch)
{
    struct mm_row r0 = {vdupq_n_s32(0), vdupq_n_s32(0)}, r1 = r0, r2 = r0, r3 = r0;
    for (const int8_t *const end = x + 16 * chunks; x != end; x += 16, w += 32) {
        const int8x16_t four = vld1q_s8(x), first = vld1q_s8(w), second = vld1q_s8(w + 16);
        TIMES(r0, 0)
        TIMES(r1, 1)
        TIMES(r2, 2)
        TIMES(r3, 3)
    }
    mm_put(sums, r0);
    mm_put(sums + pitch, r1);
    mm_put(sums + 2 * pitch, r2);
    mm_put(sums + 3 * pitch, r3);
}

#include "matmul_image.h"

NEON_INLINE void mm_finish(int8_t *y, const int32_t *sums, const int32_t *bias, int32_t offset, int32_t count,
                           const struct fl_matmul_image *p)
{
    const struct mm_output output = MM_OUTPUT(p);
    mm_row_of(y, sums, bias, offset, count, &output);
}

void neon_dotprod_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters)
{
    mm_product(x, w, y, scratch, parameters);
}
