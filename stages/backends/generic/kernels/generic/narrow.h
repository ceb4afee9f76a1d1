/* Requantization of values with some unused bits in int32, in fewer instructions than requantize.h. */
#pragma once

#include <stdint.h>

/* (x * multiplier + 2^30) >> 31: the upper half of the product by twice the multiplier, which fits unsigned. */
static inline int32_t narrow_high_mul(int32_t x, int32_t multiplier)
{
#if UINTPTR_MAX > UINT32_MAX
    return (int32_t)(((int64_t)x * multiplier + ((int64_t)1 << 30)) >> 31);
#elif defined(__riscv)
    const int64_t product = (int64_t)x * ((uint32_t)multiplier << 1);
    return (int32_t)((uint32_t)(product >> 32) + ((uint32_t)product >> 31));
#else
    const int64_t product = (int64_t)(x * 2) * multiplier; /* |x| < 2^30 */
    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
#endif
}

/* x / 2^shift to the nearest, halves away from zero, with half = 2^(shift - 1); |x| <= 2^30. */
static inline int32_t narrow_divide(int32_t x, int32_t shift, int32_t half)
{
    return (x + (x >> 31) + half) >> shift;
}

/* (x * multiplier + 2^(shift - 1)) >> shift for |x| < 2^9, shift in [11, 16]: with the multiplier taken apart at that bit, each
 * product fits 32 bits. */
static inline int32_t narrow_scale(int32_t x, int32_t multiplier, int32_t shift)
{
#if UINTPTR_MAX > UINT32_MAX
    return (int32_t)(((int64_t)x * multiplier + ((int64_t)1 << (shift - 1))) >> shift);
#else
    const int32_t upper = multiplier >> shift, lower = multiplier & ((1 << shift) - 1);
    return x * upper + ((x * lower + (1 << (shift - 1))) >> shift);
#endif
}
