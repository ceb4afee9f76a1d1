/* Products of two matrices: a row, of two in a panel, times four units, sixteen elements of the depth at a time: 5 loads for 4 vmladava. */
#include "matmul.h"

#include <stdbool.h>

#include "bytes.h"

#define MM_ROWS 2
#define MM_UNITS 4
#define MM_CHUNK 16
typedef int8_t mm_element;

MVE_INLINE void mm_chunk(int8_t *to, const int8_t *from, int32_t less)
{
    (void)less;
    vst1q_s8(to, vld1q_s8(from));
}

/* Eight elements are loaded from as many rows; offsets have 16 bits. */
MVE_INLINE bool mm_columns(int8_t *to, const int8_t *from, int32_t step, int32_t less)
{
    (void)less;
    if (step > UINT16_MAX / 8) {
        return false;
    }
    const uint16x8_t rows = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)step);
    for (int32_t u = 0; u < MM_UNITS; u++) {
        vstrbq_s16(to + 16 * u, vldrbq_gather_offset_s16(from + u, rows));
        vstrbq_s16(to + 16 * u + 8, vldrbq_gather_offset_s16(from + u + 8 * step, rows));
    }
    return true;
}

MVE_INLINE void mm_sums(const int8_t *packed, int32_t group, int32_t chunks, int32_t *sums)
{
    for (int32_t v = 0; v < group; v++) {
        const int8_t *at = packed + 16 * v;
        int32_t sum = 0;
        for (int32_t c = 0; c < chunks; c++) {
            sum = vaddvaq_s8(sum, vld1q_s8(at));
            at += 16 * group;
        }
        sums[v] = sum;
    }
}

/* A row that lies in two. */
MVE_INLINE void four_units(const int8_t *x, const int8_t *w, int32_t chunks, int32_t *sums)
{
    int32_t a = 0, b = 0, c = 0, d = 0;
    for (; chunks > 0; chunks--) {
        const int8x16_t row = vld1q_s8(x);
        a = vmladavaq_s8(a, row, vld1q_s8(w));
        b = vmladavaq_s8(b, row, vld1q_s8(w + 16));
        c = vmladavaq_s8(c, row, vld1q_s8(w + 32));
        d = vmladavaq_s8(d, row, vld1q_s8(w + 48));
        x += 16 * MM_ROWS;
        w += 64;
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

MVE_INLINE void mm_tile(const int8_t *x, const int8_t *w, int32_t chunks, int32_t *sums, int32_t pitch)
{
    four_units(x, w, chunks, sums);
    four_units(x + 16, w, chunks, sums + pitch);
}

#include "matmul_image.h"

MVE_INLINE void mm_finish(int8_t *y, const int32_t *sums, const int32_t *bias, int32_t offset, int32_t count,
                          const struct fl_matmul_image *p)
{
    const int32_t multiplier = p->multiplier, zero_point = p->zero_point;
    const int32x4_t low = vdupq_n_s32(p->low), high = vdupq_n_s32(p->high), shift = vdupq_n_s32(p->shift);
    for (; count > 0; count -= 4, sums += 4, bias += 4, y += 4) {
        const int32x4_t total = vaddq_n_s32(vaddq_s32(vld1q_s32(sums), vld1q_s32(bias)), offset);
        const int32x4_t product = vqrdmulhq_n_s32(total, multiplier);
        const int32x4_t scaled = vrshlq_s32(vaddq_s32(product, vshrq_n_s32(product, 31)), shift);
        const int32x4_t bounded = vminq_s32(vmaxq_s32(vaddq_n_s32(scaled, zero_point), low), high);
        vstrbq_p_s32(y, bounded, vctp32q((uint32_t)count));
    }
}

void mve_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters)
{
    mm_product(x, w, y, scratch, parameters);
}
