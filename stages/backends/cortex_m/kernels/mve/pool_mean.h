/* Sums of 16 bits divided by a count. */
#pragma once

#include "bytes.h"

/* n / count of 16 bits as ((n * multiplier >> 16) + n) >> 1 >> shift, with multiplier + 2^16 = 2^(17 + shift) / count rounded up:
 * exact for all n where 2^shift < count <= 2^(shift + 1) (Granlund and Montgomery 1994). */
struct divisor {
    uint16_t half, multiplier;
    int32_t right; /* -shift */
};

/* `count` is at least 2. */
MVE_INLINE struct divisor divisor_of(int32_t count)
{
    const int32_t shift = 31 - __builtin_clz((uint32_t)count - 1);
    const uint32_t multiplier = ((UINT32_C(1) << (17 + shift)) + (uint32_t)count - 1) / (uint32_t)count;
    return (struct divisor){(uint16_t)(count / 2), (uint16_t)multiplier, -shift};
}

/* sum / count, halves away from zero. */
MVE_INLINE uint16x8_t quotient(uint16x8_t sum, const struct divisor *d, int is_signed)
{
    const uint16x8_t size = is_signed ? (uint16x8_t)vabsq_s16((int16x8_t)sum) : sum;
    const uint16x8_t n = vaddq_n_u16(size, d->half);
    uint16x8_t q = vshlq_r_u16(vhaddq_u16(n, vmulhq_u16(n, vdupq_n_u16(d->multiplier))), d->right);
    if (is_signed) {
        const int16x8_t sign = vshrq_n_s16((int16x8_t)sum, 15);
        q = (uint16x8_t)vsubq_s16(veorq_s16((int16x8_t)q, sign), sign);
    }
    return q;
}
