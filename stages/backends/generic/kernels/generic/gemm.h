/* Matrix product of int8 rows, requantized to 8 bits. */
#pragma once

#include <stdint.h>

/* y[i * y_row + j * y_column] = requantize(bias[j] + sum over k of x[i * x_row + k] * (w[j][k] - weight_zero_point)),
 * w in panels of eight and five rows, see gemm.c. */
enum { FL_PANEL = 8 };
struct fl_gemm {
    int32_t x_row, y_row, y_column;
    int32_t weight_zero_point, zero_point, low, high, single_rounding;
};
void fl_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t rows, int32_t columns,
                int32_t depth, const void *parameters);

/* The same for one row, so that firmware in which all layers have one row contains no code for several. */
void fl_row_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t columns, int32_t depth,
               const void *parameters);
