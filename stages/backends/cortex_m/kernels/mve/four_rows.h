/* A row of int8 times four rows of weights, sixteen elements at a time: 5 loads and 4 vmladava. Sums are requantized as vectors. */
#pragma once

#include "bytes.h"

MVE_INLINE void mve_row(int8_t *to, const int8_t *from, int32_t count)
{
    if (count & 15) {
        vst1q_s8(to + (count & ~15), vdupq_n_s8(0));
    }
    mve_copy((uint8_t *)to, (const uint8_t *)from, count);
}

MVE_INLINE void mve_four_rows(const int8_t *row, const int8_t *w, int32_t chunks, const int32_t *bias, int32_t *sums)
{
    int32_t a = bias[0], b = bias[1], c = bias[2], d = bias[3];
    for (; chunks > 0; chunks--) {
        const int8x16_t x = vld1q_s8(row);
        a = vmladavaq_s8(a, x, vld1q_s8(w));
        b = vmladavaq_s8(b, x, vld1q_s8(w + 16));
        c = vmladavaq_s8(c, x, vld1q_s8(w + 32));
        d = vmladavaq_s8(d, x, vld1q_s8(w + 48));
        row += 16;
        w += 64;
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* x / 2^-right, halves away from zero; right <= 0. */
MVE_INLINE int32x4_t mve_shifted_right(int32x4_t x, int32x4_t right)
{
    return vrshlq_s32(vaddq_s32(x, vshrq_n_s32(vandq_s32(x, right), 31)), right);
}

/* As fl_requantize_double. */
MVE_INLINE int32x4_t mve_scaled(int32x4_t x, int32x4_t multiplier, int32x4_t shift)
{
    const int32x4_t zero = vdupq_n_s32(0);
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(x, vmaxq_s32(shift, zero)), multiplier);
    return mve_shifted_right(high, vminq_s32(shift, zero));
}

MVE_INLINE int32x4_t mve_to_int16(int32x4_t x)
{
    return vminq_s32(vmaxq_s32(x, vdupq_n_s32(INT16_MIN)), vdupq_n_s32(INT16_MAX));
}
