/* Softmax of 8-bit rows. */
#pragma once

#include <stdint.h>

/* Softmax of one row. Its elements are `x_step` apart in x and `y_step` in y. exp is int32[256], by distance from the row's maximum. */
void fl_softmax_s8(const int8_t *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step);
void fl_softmax_u8(const uint8_t *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step);
