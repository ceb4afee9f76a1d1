/* Sum and difference of 8-bit tensors. */
#pragma once

#include <stdint.h>

/* Element-wise on `count` elements; `step` is the distance of neighbours in an input, 0 for one value that is
 * repeated. */
struct fl_add {
    int32_t zero_point0, zero_point1, left_shift, multiplier0, shift0, multiplier1, shift1, sign;
    int32_t multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters);
void fl_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters);
