/* Products of two matrices: tiles of 4 rows times 8 units. Elements are int16, minus the zero point: 2 loads for 8 smlal. */
#include "matmul.h"

#include <stdbool.h>

#include "neon_matmul.h"

#define MM_ROWS 4
#define MM_UNITS 8
#define MM_CHUNK 1
#define MM_CENTRED
typedef int16_t mm_element;

NEON_INLINE void mm_chunk(int16_t *to, const int8_t *from, int32_t less)
{
    *to = (int16_t)(*from - less);
}

NEON_INLINE bool mm_columns(int16_t *to, const int8_t *from, int32_t step, int32_t less)
{
    (void)step;
    vst1q_s16(to, vsubq_s16(vmovl_s8(vld1_s8(from)), vdupq_n_s16((int16_t)less)));
    return true;
}

#define TIMES(row, lane)                                              \
    row.low = vmlal_lane_s16(row.low, vget_low_s16(units8), four, lane); \
    row.high = vmlal_high_lane_s16(row.high, units8, four, lane);

NEON_INLINE void mm_tile(const int16_t *x, const int16_t *w, int32_t chunks, int32_t *sums, int32_t pitch)
{
    struct mm_row r0 = {vdupq_n_s32(0), vdupq_n_s32(0)}, r1 = r0, r2 = r0, r3 = r0;
    for (const int16_t *const end = x + 4 * chunks; x != end; x += 4, w += 8) {
        const int16x4_t four = vld1_s16(x);
        const int16x8_t units8 = vld1q_s16(w);
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
    (void)bias;
    const struct mm_output output = MM_OUTPUT(p);
    mm_row_of(y, sums, NULL, offset, count, &output);
}

void neon_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters)
{
    mm_product(x, w, y, scratch, parameters);
}
