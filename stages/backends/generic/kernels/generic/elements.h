/* Shared by loops over 8-bit elements. */
#pragma once

#include <stdint.h>

/* Literal arguments make one loop for each data type. */
#define INLINE static inline __attribute__((always_inline))

/* An element; `is_unsigned` is a literal at every call. */
INLINE int32_t load(const uint8_t *x, int is_unsigned)
{
    return is_unsigned ? *x : (int8_t)*x;
}
