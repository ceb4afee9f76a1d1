/* QUANTIZE: 8 bits to 8 bits with another scale. */
#pragma once

#include <stdint.h>

/* y = requantize(x - input_zero_point) */
struct fl_requantize {
    int32_t input_zero_point, multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_requantize_s8(const int8_t *x, void *y, int32_t count, int32_t step, const void *parameters);
void fl_requantize_u8(const uint8_t *x, void *y, int32_t count, int32_t step, const void *parameters);
