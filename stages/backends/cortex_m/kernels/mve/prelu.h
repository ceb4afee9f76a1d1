/* PRELU of 8-bit tensors. */
#pragma once

#include <stdint.h>

/* Products of a value below zero and its slope are scaled by multiplier and rounder, as in rounding.py. prelu.S reads them at fixed offsets. */
struct mve_prelu {
    int32_t zero_point0, zero_point1, multiplier, rounder, zero_point, low, high;
};

/* `count` values x0 and their slopes x1; a step of 0 repeats one slope. The table has the results of values from zero up. */
typedef void mve_prelu_run(const void *x0, const void *x1, void *y, int32_t count, int32_t step0, int32_t step1,
                           const void *parameters, const void *table);

mve_prelu_run mve_prelu_s8, mve_prelu_u8;
