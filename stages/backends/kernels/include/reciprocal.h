/* The reciprocal of gemmlowp's fixed-point arithmetic. */
#pragma once

#include "requantize.h"

/* 1 / (2 * half) for half in [1/2, 1), Q0.31 to Q0.31, by three Newton-Raphson steps from 48/17 - 32/17 * half. The error of the first
 * value is below 1/17, so only the last result can be too large.
 */
static inline int32_t fl_reciprocal(int32_t half)
{
    int32_t r = 1515870810 + fl_high_mul(half, -1010580540); /* Q2.29 */
    for (int step = 0; step < 3; step++) {
        const int32_t error = (1 << 29) - fl_high_mul(half, r);
        r += fl_high_mul(r, error) * 4;
    }
    return r >= 1 << 30 ? INT32_MAX : r * 2;
}
