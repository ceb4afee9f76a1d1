/* Means of bytes from sums in 16-bit lanes. */
#pragma once

#include "rvp_intrinsics.h"

/* Conversion of sums of `count` bytes to means.
 *
 * Sums are kept as a + 1 with a = sum + 128 * count + count / 2 for signed bytes, sum + count / 2 for unsigned ones: never
 * negative, so that the mean, 128 higher for signed bytes, is a / count rounded down. (Halves of negative sums, which an
 * even count can have, are lowered by one before.) That quotient is (a + 1) * factor >> n, with n = 15 + shift,
 * 2^shift <= count and factor = (2^n - 1) / count rounded down, if (a + 1) * (2^n - factor * count) <= 2^n for the
 * largest a: then the product is less than (a + 1) / count, and not less than a / count. `start` is 0 if a count does
 * not meet this condition, or if its a does not fit 15 bits; then means are divided one by one.
 */
struct divider {
    int count, shift;
    rvp_word start;   /* initial value of sums, in every 16-bit lane */
    rvp_word ties;    /* sums below this are negative and may be halves, in every 16-bit lane */
    rvp_word factor;
};

static inline struct divider divider_of(int count, int is_unsigned)
{
    struct divider d = {.count = count};
    const int largest = 255 * count + count / 2 + 1;
    if (count == 0 || largest >= 1 << 15) {
        return d;
    }
    while (2 << d.shift <= count) {
        d.shift++;
    }
    const uint32_t one = UINT32_C(1) << (15 + d.shift), factor = (one - 1) / (uint32_t)count;
    if ((uint32_t)largest * (one - factor * (uint32_t)count) <= one) {
        d.start = rvp_splat16((is_unsigned ? 0 : 128 * count) + count / 2 + 1);
        d.ties = is_unsigned || count % 2 != 0 ? 0 : d.start;
        d.factor = rvp_splat16((int)factor);
    }
    return d;
}

RVP_INLINE rvp_word divide(rvp_word sums, const struct divider *d)
{
    if (d->ties != 0) {
        sums = rvp_add16(sums, rvp_scmplt16(sums, d->ties));
    }
    return rvp_srl16(rvp_khm16(sums, d->factor), (rvp_word)d->shift);
}
