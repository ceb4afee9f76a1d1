/* Pieces of gemmlowp's fixed-point arithmetic beyond requantization. */
#ifndef FIRMLINE_FIXED_POINT_H
#define FIRMLINE_FIXED_POINT_H

#include <stdint.h>

/* The nearest int32. */
static inline int32_t fl_saturate(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

/* Zero bits above the highest one in 32 bits; 32 for 0. */
static inline int32_t fl_leading_zeros(uint32_t x)
{
    int32_t count = 0;
    while (count < 32 && (x & 0x80000000u) == 0) {
        x <<= 1;
        count++;
    }
    return count;
}

#endif
