/* Products of two matrices that are both computed at run time. */
#pragma once

#include <stdint.h>

/* A row: y[j] = requantize(sum over k of (x[k * x_step] - zero_point0) * (w[j * w_unit + k * w_step] - zero_point1))
 * of `units` sums of `depth` products. */
struct fl_matmul {
    int32_t depth, units, x_step, w_unit, w_step;
    int32_t zero_point0, zero_point1, multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_matmul_row_s8(const int8_t *x, const int8_t *w, int8_t *y, const void *parameters);
/* On int16 without zero points: y[j] = the sum of 64 bits, times the 16 bits of `multiplier`, over 2^(15 - shift). */
void fl_matmul_row_s16(const int16_t *x, const int16_t *w, int16_t *y, const void *parameters);
