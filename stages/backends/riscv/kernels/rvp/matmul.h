/* A product of two int8 matrices that are both computed at run time. */
#pragma once

#include <stdint.h>

/* Results are scaled as scaled_sums.h does with one multiplier and rounder, SHORT or (`wide`) WIDE. */
struct rvp_matmul {
    int32_t rows, depth, units, x_row, x_step, w_unit, w_step;
    int32_t zero_point0, zero_point1, multiplier, rounder, wide;
    int32_t clip; /* as in gemm_s8.S */
};

/* The layer is a struct rvp_matmul; scratch: matmul.c. */
void rvp_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const int32_t *layer);
