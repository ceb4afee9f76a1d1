/* Functions of gemmlowp's fixed-point arithmetic other than requantization. */
#pragma once

#include <stdint.h>

/* The nearest int32. */
static inline int32_t fl_saturate(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

/* Zero bits above the highest one in 32 bits; 32 for 0. */
static inline int32_t fl_leading_zeros(uint32_t x)
{
#ifdef __ARM_FEATURE_CLZ
    return x == 0 ? 32 : __builtin_clz(x);
#else
    int32_t count = 0; /* zero bits above the remaining bits, which are halved five times */
    if (x >> 16 == 0) {
        count += 16;
        x <<= 16;
    }
    if (x >> 24 == 0) {
        count += 8;
        x <<= 8;
    }
    if (x >> 28 == 0) {
        count += 4;
        x <<= 4;
    }
    if (x >> 30 == 0) {
        count += 2;
        x <<= 2;
    }
    if (x >> 31 == 0) {
        count += x == 0 ? 2 : 1;
    }
    return count;
#endif
}
