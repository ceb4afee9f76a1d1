/* Sum of two 8-bit tensors. One of them is brought to the common scale by a shift. */
#pragma once

#include "rows.h"

/* The rest of the constants; zero_point, floor and low as in gemm.S, doubled and rounder as in rounding.py. */
struct arm_dsp_add {
    int32_t doubled, rounder, zero_point, floor, low;
};

/* y[i] = requantize((x0[i] << 19) + table[x1[i]]); the table is indexed by the byte. y may be x0 or x1. */
void arm_dsp_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, const int32_t *table, const int32_t *fields);
void arm_dsp_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, const int32_t *table, const int32_t *fields);

/* The same with rows of runs: `each` advances both operands; `one0` or `one1` repeats one element of that operand in each run. */
typedef void arm_dsp_add_runs(const void *x0, const void *x1, void *y, const int32_t *table, const int32_t *fields, const int32_t *rows);

arm_dsp_add_runs arm_dsp_add_each_s8, arm_dsp_add_each_u8, arm_dsp_add_one0_s8, arm_dsp_add_one0_u8;
arm_dsp_add_runs arm_dsp_add_one1_s8, arm_dsp_add_one1_u8;
