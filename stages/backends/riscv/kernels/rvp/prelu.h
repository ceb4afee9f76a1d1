/* PRELU of 8-bit tensors. */
#pragma once

#include "operands.h"

/* Zero points are those of int8 values: uint8 becomes int8 by flipping the top bit. Values from zero on are multiplied by
 * `one`, a power of two, and scaled by multiplier0 and rounder0; products of others with their slopes by multiplier1 and
 * rounder1. Rounders are 2^(31 - s); that of s = 0 is 2^31 - 1. */
struct rvp_prelu {
    struct rvp_rows rows;
    int32_t zero_point0, zero_point1, one;
    int32_t multiplier0, rounder0, multiplier1, rounder1;
    int32_t clip; /* as in gemm_s8.S */
};

/* x0 has the values, x1 their slopes; y may be either. */
void rvp_prelu_s8(const void *x0, const void *x1, void *y, const int32_t *fields);
