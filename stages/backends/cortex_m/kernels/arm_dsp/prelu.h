/* PRELU of 8-bit tensors. */
#pragma once

#include <stdint.h>

/* Products of a value below zero and its slope are scaled by doubled and rounder, as in rounding.py. */
struct arm_dsp_prelu {
    int32_t zero_point0, zero_point1, doubled, rounder, zero_point, low, high;
};

/* `count` values x0 and their slopes x1; a step is 1, or 0 for one repeated value. The table has the results of values from zero up. y may
 * be x0.
 */
typedef void arm_dsp_prelu_run(const void *x0, const void *x1, void *y, int32_t count, int32_t step0, int32_t step1,
                               const void *parameters, const void *table);

arm_dsp_prelu_run arm_dsp_prelu_s8, arm_dsp_prelu_u8;
