/* Matrix product of int8 rows and weights, requantized to 8 bits, on RISC-V without SIMD instructions. */
#ifndef FIRMLINE_RISCV_GEMM_H
#define FIRMLINE_RISCV_GEMM_H

#include <stdint.h>

/* Rows of x are x_row bytes apart, those of y y_row, columns of y y_column. `depth` is the length of a row, on 32 bits filled up
 * to whole groups (gemm.c); `rectified` says whether rectified.h is for the layer. */
struct riscv_gemm {
    int32_t x_row, y_row, y_column;
    int32_t row, depth, zero_point, low, high, rectified;
};

/* y[i, j] = requantize(bias[j] + sum over k of x[i, k] * w[j, k]) with two roundings; w in panels, see gemm.c. `packed` takes three words for each element of a row on 32 bits, on 64 two of 64 bits. */
void riscv_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t *packed, int32_t rows,
                   int32_t columns, const void *parameters);

#endif
