/* MUL of two 8-bit tensors. */
#pragma once

#include "operands.h"

/* Zero points are for int8 values; uint8 becomes int8 by flipping the top bit. The rounder is 2^(31 - s). */
struct rvp_mul {
    struct rvp_rows rows;
    int32_t zero_point0, zero_point1;
    int32_t multiplier, rounder;
    int32_t clip; /* as in gemm_s8.S */
};

void rvp_mul_s8(const void *x0, const void *x1, void *y, const int32_t *fields);
