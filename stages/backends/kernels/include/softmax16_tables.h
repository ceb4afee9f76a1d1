/* Softmax of int16 rows, for all families. Tables are struct softmax16_tables. */
#pragma once

#include <stdint.h>

/* Lines of a table: the start in the lower half, the slope in the upper. `exponential` is of -10 to 0, `reciprocal` of
 * 1 / (1 + x) for x from 0 to 1. */
struct softmax16_tables {
    uint32_t exponential[512], reciprocal[512];
};

/* Differences from the row's maximum, which are not positive, to positions in the table: x is multiplied by 2^left, then by
 * multiplier / 2^31 and rounded, and then `add` rounds the division by 2^right, halves away from zero. */
struct softmax16_scale {
    int32_t multiplier, left, add, right;
};

static inline struct softmax16_scale softmax16_scale_of(int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = shift < 0 ? -shift : 0;
    return (struct softmax16_scale){multiplier, left, right > 0 ? (int32_t)(((uint32_t)1 << (right - 1)) - 1) : 0, right};
}

/* The value at `position`, 0 to 65535, of a table. */
static inline int32_t softmax16_value(const uint32_t *table, int32_t position)
{
    const uint32_t line = table[position >> 7];
    return (int16_t)line + ((((int32_t)line >> 16) * (position & 127) + 64) >> 7);
}

/* What multiplies the powers of a row; the products are divided by 2^shift. */
struct softmax16_factor {
    int32_t factor, shift;
};

/* `total` is the sum of the powers, at least 1. */
static inline struct softmax16_factor softmax16_factor_of(const uint32_t *reciprocal, uint32_t total)
{
    const int32_t zeros = __builtin_clz(total);
    const int32_t position = (int32_t)(((total << (zeros - 1)) + (1u << 13)) >> 14) - (1 << 16);
    return (struct softmax16_factor){softmax16_value(reciprocal, position > 65535 ? 65535 : position), 31 - zeros};
}
