/* L2 normalization of 8-bit rows. */
#pragma once

#include <stdint.h>

/* A row divided by its Euclidean norm; elements are `x_step` (y_step) apart. */
void fl_l2_normalize_s8(const int8_t *x, void *y, int32_t count, int32_t x_step, int32_t y_step,
                        int32_t input_zero_point);
void fl_l2_normalize_u8(const uint8_t *x, void *y, int32_t count, int32_t x_step, int32_t y_step,
                        int32_t input_zero_point);
