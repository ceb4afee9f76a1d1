/* Means of 8-bit tensors. */
#pragma once

#include <stdint.h>

/* `count` means: y[i] = requantize(sum over a and b of x[i * x_step + a * step0 + b * step1] - offset) */
struct fl_mean {
    int32_t x_step, extent0, step0, extent1, step1;
    int32_t offset, multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_mean_s8(const int8_t *x, void *y, int32_t count, const void *parameters);
void fl_mean_u8(const uint8_t *x, void *y, int32_t count, const void *parameters);
