/* Shared by kernels of 16-bit activations: the constants of an output channel, and the scaling of its sums. */
#pragma once

#include <stdint.h>

#define S16_INLINE static inline __attribute__((always_inline))

/* Constants of an output channel. Its scale is (high * 2^32 + low) * 2^-64. */
struct s16_channel {
    int64_t bias;
    int32_t high, low;
};

S16_INLINE int32_t s16_clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* (t * high + 2^31) >> 32; a family's file may have an instruction for it. */
#ifndef S16_HIGH
#define S16_HIGH(t, high) ((int32_t)(((int64_t)(t) * (high) + ((int64_t)1 << 31)) >> 32))
#endif
