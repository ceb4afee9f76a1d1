/* Declarations of the functions in copies.S; see there. */
#pragma once

#include <stdint.h>

void rvv_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step);
void rvv_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step);
void rvv_nearest(void *y, const void *x, const int32_t *rows, const int32_t *columns, int32_t height, int32_t width,
                 int32_t bytes, int32_t x_step);
void rvv_copy_bytes(void *y, const void *x, int32_t rows, int32_t columns, int32_t y_row, int32_t y_column, int32_t x_row,
                    int32_t x_column);
