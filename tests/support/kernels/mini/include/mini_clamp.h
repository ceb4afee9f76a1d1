/* Saturation to int8. */
#ifndef MINI_CLAMP_H
#define MINI_CLAMP_H

#include <stdint.h>

static inline int8_t mini_clamp(int32_t x)
{
    return (int8_t)(x < -128 ? -128 : x > 127 ? 127 : x);
}

#endif
