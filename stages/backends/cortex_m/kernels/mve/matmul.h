/* A product of two int8 matrices. */
#pragma once

#include <stdint.h>

/* x is [rows][depth], elements x_row and x_step bytes apart, w [units][depth]; y [rows][units] without gaps. Results are scaled by
 * multiplier * 2^(shift - 31) with two roundings, shift below 0. */
struct mve_matmul {
    int32_t rows, depth, units, x_row, x_step, w_unit, w_step;
    int32_t zero_point0, zero_point1, multiplier, shift, zero_point, low, high;
};

/* matmul.c describes `scratch`; `parameters` is a struct mve_matmul. */
void mve_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters);
