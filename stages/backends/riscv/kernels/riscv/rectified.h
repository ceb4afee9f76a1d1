/* Requantization with two roundings, computed in one. Only for results that are never below the zero point, as with a fused ReLU.
 *
 * With t = (sum * m + 2^30) >> 31 the result is (t + 2^(s - 1)) >> s for t >= 0. The two shifts can be combined:
 *
 *      (sum * m + 2^30 + 2^(30 + s)) >> (31 + s)
 *
 * A negative t gives 0 or less with both formulas, and the clamp makes it at least the zero point. The zero point z is added
 * before the shift, as z * 2^(31 + s). rectified.py checks the bounds that a layer must have for this.
 */
#pragma once

#include <stdint.h>

#include "channels.h"
#include "elements.h"

/* On 32 bits the upper half of the product by twice m is shifted by s. Of the lower half only the top bit matters: the first
 * rounding adds one to it. */
struct rectifier {
    intptr_t multiplier, added;
    int32_t shift;
};

/* The result is not used for channels that are not rectified. So larger shifts are possible; they are reduced as registers do. */
INLINE struct rectifier rectifier_of(const int32_t *channel, int32_t zero_point)
{
    const int32_t multiplier = channel[FL_MULTIPLIER], s = -channel[FL_SHIFT];
#if UINTPTR_MAX > UINT32_MAX
    const uint64_t added = (uint64_t)(2 * (int64_t)zero_point + 1) << ((30 + s) & 63);
    return (struct rectifier){multiplier, (int64_t)(((uint64_t)1 << 30) + added), 31 + s};
#else
    const uint32_t added = (uint32_t)(2 * zero_point + 1) << ((s - 1) & 31);
    return (struct rectifier){(int32_t)((uint32_t)multiplier << 1), (int32_t)added, s};
#endif
}

/* The result before it is clamped. */
INLINE intptr_t rectified(int32_t sum, const struct rectifier *r)
{
#if UINTPTR_MAX > UINT32_MAX
    return (sum * r->multiplier + r->added) >> r->shift;
#else
    const int64_t product = (int64_t)sum * (uint32_t)r->multiplier;
    return (int32_t)((uint32_t)(product >> 32) + ((uint32_t)product >> 31) + (uint32_t)r->added) >> r->shift;
#endif
}

/* Two instructions within the bounds and three outside. A minimum and a maximum would be six instructions. */
INLINE intptr_t clamped(intptr_t x, intptr_t low, intptr_t high)
{
    __asm__("bge %0, %1, 1f\n\t"
            "mv %0, %1\n"
            "1:\n\t"
            "ble %0, %2, 2f\n\t"
            "mv %0, %2\n"
            "2:"
            : "+r"(x)
            : "r"(low), "r"(high));
    return x;
}
