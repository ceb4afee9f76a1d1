/* Transposes of matrices of bytes. */
#pragma once

#include <stdint.h>

/* y[column * y_step + row] = x[row * x_step + column], of `matrices` that are y_matrix and x_matrix bytes apart. */
void arm_dsp_transpose(void *y, const void *x, int32_t rows, int32_t columns, int32_t y_step, int32_t x_step, int32_t matrices,
                       int32_t y_matrix, int32_t x_matrix);
