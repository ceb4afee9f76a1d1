/* Product of 8-bit tensors. */
#pragma once

#include <stdint.h>

/* Element-wise on `count` elements; `step` is the distance of neighbours in an input, 0 for one value that is
 * repeated. */
struct fl_mul {
    int32_t zero_point0, zero_point1, multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_mul_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters);
void fl_mul_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters);
