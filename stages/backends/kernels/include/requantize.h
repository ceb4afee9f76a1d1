/* Fixed-point requantization, exact to the bit with the LiteRT reference kernels.
 *
 * A real multiplier is multiplier * 2^(shift - 31), multiplier in [0, 2^31), shift in [-31, 30]; a positive shift goes
 * left. Negative values are shifted right arithmetically (as GCC and Clang define it) and never shifted left.
 */
#pragma once

#include <stdint.h>

/* a + b modulo 2^32: the exact sum wherever it fits, however large the intermediate sums are. */
static inline int32_t fl_add_wrapping(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t fl_clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* SaturatingRoundingDoublingHighMul, (a * b + 2^30) >> 31, of any two values except if both are -2^31 (which would saturate). */
static inline int32_t fl_high_mul(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}

/* RoundingDivideByPOT: x / 2^shift to the nearest, halves away from zero; shift in [1, 31]. */
static inline int32_t fl_divide_by_pot(int32_t x, int32_t shift)
{
#if UINTPTR_MAX > UINT32_MAX
    /* Adding half rounds halves up. For a negative x, half - 1 rounds them down. */
    return (int32_t)(((int64_t)x + (x >> 31) + ((int64_t)1 << (shift - 1))) >> shift);
#else
    /* The same in 32 bits, where that sum may not fit. */
    const int32_t mask = (int32_t)(((uint32_t)1 << shift) - 1);
    const int32_t threshold = (mask >> 1) + (x < 0);
    return (x >> shift) + ((x & mask) > threshold);
#endif
}

/* MultiplyByQuantizedMultiplier with two roundings (convolution, depthwise convolution, add, ...). */
static inline int32_t fl_requantize_double(int32_t x, int32_t multiplier, int32_t shift)
{
    if (shift >= 0) {
        return fl_high_mul((int32_t)((uint32_t)x << shift), multiplier);
    }
    return fl_divide_by_pot(fl_high_mul(x, multiplier), -shift);
}

/* One rounding of the 64-bit product (fully connected): (x * multiplier + 2^(30 - shift)) >> (31 - shift). */
static inline int32_t fl_requantize_single(int32_t x, int32_t multiplier, int32_t shift)
{
    return (int32_t)(((int64_t)x * multiplier + ((int64_t)1 << (30 - shift))) >> (31 - shift));
}
