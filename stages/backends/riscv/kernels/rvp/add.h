/* ADD and SUB of two 8-bit tensors. */
#pragma once

#include "operands.h"

/* Each input is brought to the common scale: t = (x - zero_point) * multiplier / 2^s, with two roundings. The sum is then brought to the
 * output's scale. Zero points are for int8 values; uint8 becomes int8 by flipping the top bit. A rounder is 2^(31 - s) + 1 for an input (0:
 * no second rounding) and 2^(31 - s) for the output; see packing.py.
 */
struct rvp_add {
    struct rvp_rows rows;
    int32_t shift; /* the operator's left shift, minus 15 */
    int32_t zero_point0, multiplier0, rounder0;
    int32_t zero_point1, multiplier1, rounder1;
    int32_t multiplier, rounder;
    int32_t clip; /* as in gemm_s8.S */
};

void rvp_add_s8(const void *x0, const void *x1, void *y, const int32_t *fields);
void rvp_sub_s8(const void *x0, const void *x1, void *y, const int32_t *fields);
