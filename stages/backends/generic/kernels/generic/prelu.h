/* PRELU of 8-bit tensors. */
#pragma once

#include <stdint.h>

/* PRELU of `count` values x0 and their slopes x1; `step` is the distance of neighbours in an input, 0 for one value that is
 * repeated. Values are scaled by multiplier0 and shift0, products of a value below zero and its slope by the others. */
struct fl_prelu {
    int32_t zero_point0, zero_point1, multiplier0, shift0, multiplier1, shift1, zero_point, low, high, single_rounding;
};
void fl_prelu_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
                 const void *parameters);
void fl_prelu_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
                 const void *parameters);
