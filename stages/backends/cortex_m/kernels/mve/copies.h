/* Declarations of the functions in copies.S; see there. */
#pragma once

#include <stdint.h>

void mve_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step);
typedef void mve_strided_rows(void *y, const void *x, int32_t rows, int32_t items, int32_t y_step, int32_t x_step, int32_t stride);
mve_strided_rows mve_pick_rows_8, mve_pick_rows_16, mve_pick_rows_32, mve_put_rows_8, mve_put_rows_16, mve_put_rows_32;
void mve_gather_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step, const uint8_t *offsets);
void mve_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step);
