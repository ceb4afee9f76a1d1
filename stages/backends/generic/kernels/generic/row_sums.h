/* Averages, means and maxima of an 8-bit image, one band of rows at a time. */
#pragma once

#include <stdint.h>

/* Add a band of `pixels` pixels to the sums of the channels, or keep the maxima. */
void fl_row_sums_s8(const int8_t *x, int32_t *sums, int32_t pixels, int32_t channels);
void fl_row_sums_u8(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels);
void fl_row_maxima_s8(const int8_t *x, int32_t *maxima, int32_t pixels, int32_t channels);
void fl_row_maxima_u8(const uint8_t *x, int32_t *maxima, int32_t pixels, int32_t channels);

/* y[c] = sums[c] / count, halves away from zero; a count of 1 is for maxima */
struct fl_row_averages {
    int32_t count, low, high;
};
void fl_row_averages(const int32_t *sums, void *y, int32_t channels, const void *parameters);

/* y[c] = requantize(sums[c] - offset) */
struct fl_row_means {
    int32_t offset, multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_row_means(const int32_t *sums, void *y, int32_t channels, const void *parameters);
