/* Declarations of the functions in row_vectors.S; see there. */
#pragma once

#include <stdint.h>

typedef int32_t rvv_largest(const void *x, int32_t count);
rvv_largest rvv_largest_s8, rvv_largest_u8;
uint32_t rvv_exponential_sum(const void *x, const int32_t *exp, int32_t count, int32_t top);
void rvv_exponential_parts(const void *x, const int32_t *exp, void *y, int32_t count, int32_t top, int32_t scale,
                           int32_t right, int32_t lowest);
void rvv_between_rows(int32_t *to, const int8_t *first, const int8_t *second, int32_t count, int32_t share0, int32_t share1);
void rvv_between_columns(int8_t *to, const int32_t *first, const int32_t *second, int32_t count, int32_t share0,
                         int32_t share1);
void rvv_between_pixels(int8_t *to, const int32_t *row, const int32_t *columns, int32_t pixels, int32_t channels);
