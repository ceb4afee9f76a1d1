/* MEAN of 8-bit tensors. The means are consecutive in memory. */
#pragma once

#include <stdint.h>

/* y[i] = the sum over rows and columns of x[i + row * row_step + column * column_step], less offset, scaled. Steps are bytes,
 * multiples of a register. Signs and the rounder are as in mul.h. */
struct rvp_mean {
    int32_t rows, row_step, columns, column_step;
    int32_t offset, multiplier, rounder;
    int32_t clip; /* as in gemm_s8.S */
};

/* `count` and all steps are multiples of a register. */
void rvp_mean_s8(const void *x, void *y, int count, const int32_t *fields);
void rvp_mean_u8(const void *x, void *y, int count, const int32_t *fields);

#if __riscv_xlen == 64
/* `count`, all steps and the addresses of x and y are multiples of four. */
void rvp_mean_quads_s8(const void *x, void *y, int count, const int32_t *fields);
void rvp_mean_quads_u8(const void *x, void *y, int count, const int32_t *fields);
#endif
