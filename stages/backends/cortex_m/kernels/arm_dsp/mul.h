/* Products of two tensors of 8 bits. */
#pragma once

#include "rows.h"

/* zero0 and zero1: minus the inputs' zero points in both halves; doubled and rounder as in rounding.py, zero_point, floor and low as in
 * gemm.S. */
struct arm_dsp_mul {
    struct arm_dsp_rows rows;
    int32_t zero0, zero1, doubled, rounder, zero_point, floor, low;
};

/* y = requantize((x0 - zero point) * (x1 - zero point)). `each`: both operands step along. `one`: x1 repeats an element in each run. */
typedef void arm_dsp_mul(const void *x0, const void *x1, void *y, const int32_t *fields);

arm_dsp_mul arm_dsp_mul_each_s8, arm_dsp_mul_each_u8, arm_dsp_mul_one_s8, arm_dsp_mul_one_u8;
