/* fl_requantize_double and fl_requantize_single, on RISC-V in fewer instructions than in requantize.h. */
#pragma once

#include "requantize.h"

#if defined(__riscv)

/* fl_high_mul: on 32 bits the upper half of the product by twice the multiplier, which fits unsigned. */
static inline int32_t scaling_high_mul(int32_t x, int32_t multiplier)
{
#if UINTPTR_MAX > UINT32_MAX
    return fl_high_mul(x, multiplier);
#else
    const int64_t product = (int64_t)x * ((uint32_t)multiplier << 1);
    return (int32_t)((uint32_t)(product >> 32) + ((uint32_t)product >> 31));
#endif
}

/* fl_requantize_double for a negative shift. The division lowers negative values by one and then rounds halves up. The last
 * bit is shifted out separately, so that sums fit 32 bits; a product is above -2^31. */
static inline int32_t scaled_down(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t high = scaling_high_mul(x, multiplier);
    return (((high + (high >> 31)) >> (-shift - 1)) + 1) >> 1;
}

static inline int32_t scaled_twice(int32_t x, int32_t multiplier, int32_t shift)
{
    return shift < 0 ? scaled_down(x, multiplier, shift) : fl_requantize_double(x, multiplier, shift);
}

/* fl_requantize_single: for a negative shift the lower half of the product has no part in the result. */
static inline int32_t scaled_once(int32_t x, int32_t multiplier, int32_t shift)
{
#if UINTPTR_MAX == UINT32_MAX
    if (shift < 0) {
        const int32_t high = (int32_t)((int64_t)x * ((uint32_t)multiplier << 1) >> 32);
        return ((high >> (-shift - 1)) + 1) >> 1;
    }
#endif
    return fl_requantize_single(x, multiplier, shift);
}

#else

static inline int32_t scaled_once(int32_t x, int32_t multiplier, int32_t shift)
{
    return fl_requantize_single(x, multiplier, shift);
}

static inline int32_t scaled_twice(int32_t x, int32_t multiplier, int32_t shift)
{
    return fl_requantize_double(x, multiplier, shift);
}

#endif
