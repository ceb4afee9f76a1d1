/* Converts the sums of eight units of four rows to results, for products of matrices (matmul_image.h). */
#pragma once

#include <stddef.h>

#include "neon_vectors.h"

struct mm_row {
    int32x4_t low, high;
};

struct mm_output {
    int32x4_t multiplier, shift, zero_point, least, most;
};

#define MM_OUTPUT(p)                                                                                          \
    {vdupq_n_s32((p)->multiplier), vdupq_n_s32((p)->shift), vdupq_n_s32((p)->zero_point), vdupq_n_s32((p)->low), \
     vdupq_n_s32((p)->high)}

NEON_INLINE int32x4_t mm_bounded(int32x4_t sums, const struct mm_output *o)
{
    const int32x4_t moved = vaddq_s32(neon_scale_halves(sums, o->multiplier, o->shift), o->zero_point);
    return vminq_s32(vmaxq_s32(moved, o->least), o->most);
}

NEON_INLINE void mm_write(int8_t *y, struct mm_row sums, int32_t units, const struct mm_output *o)
{
    const int16x8_t halves = vmovn_high_s32(vmovn_s32(mm_bounded(sums.low, o)), mm_bounded(sums.high, o));
    uint64_t bytes = vget_lane_u64(vreinterpret_u64_s8(vmovn_s16(halves)), 0);
    if (units >= 8) {
        __builtin_memcpy(y, &bytes, 8);
        return;
    }
    for (int32_t u = 0; u < units; u++, bytes >>= 8) {
        y[u] = (int8_t)bytes;
    }
}

/* A row of sums as results; `sums` and `bias` hold multiples of eight. */
NEON_INLINE void mm_row_of(int8_t *y, const int32_t *sums, const int32_t *bias, int32_t offset, int32_t count,
                           const struct mm_output *o)
{
    const int32x4_t beside = vdupq_n_s32(offset);
    for (; count > 0; count -= 8, y += 8, sums += 8) {
        struct mm_row row = {vaddq_s32(vld1q_s32(sums), beside), vaddq_s32(vld1q_s32(sums + 4), beside)};
        if (bias != NULL) {
            row.low = vaddq_s32(row.low, vld1q_s32(bias));
            row.high = vaddq_s32(row.high, vld1q_s32(bias + 4));
            bias += 8;
        }
        mm_write(y, row, count, o);
    }
}

NEON_INLINE void mm_put(int32_t *sums, struct mm_row row)
{
    vst1q_s32(sums, row.low);
    vst1q_s32(sums + 4, row.high);
}
