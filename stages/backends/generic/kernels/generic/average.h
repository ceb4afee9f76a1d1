/* The average of integers. */
#pragma once

#include <stdint.h>

/* sum / count to the nearest, halves away from zero */
static inline int32_t average(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}
