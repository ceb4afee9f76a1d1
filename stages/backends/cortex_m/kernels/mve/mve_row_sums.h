/* Sums and maxima of an 8-bit image that comes by bands of rows: generic/row_sums.h. */
#pragma once

#include <stdint.h>

void mve_row_sums_s8(const int8_t *x, int32_t *sums, int32_t pixels, int32_t channels);
void mve_row_sums_u8(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels);
void mve_row_maxima_s8(const int8_t *x, int32_t *maxima, int32_t pixels, int32_t channels);
void mve_row_maxima_u8(const uint8_t *x, int32_t *maxima, int32_t pixels, int32_t channels);
