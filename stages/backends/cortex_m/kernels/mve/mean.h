/* Means over pixels, requantized; the division is part of the multiplier. */
#pragma once

#include <stdint.h>

/* The pixels of a mean: `rows` rows of `columns` (at most 255), with steps in bytes. `offset` is the input's zero point times their number;
 * low and high clip.
 */
struct mve_mean {
    int32_t rows, row_step, columns, column_step;
    int32_t offset, multiplier, shift, zero_point, low, high;
};

/* `count` means of neighbours. */
void mve_mean_s8(const void *x, void *y, int32_t count, const int32_t *fields);
void mve_mean_u8(const void *x, void *y, int32_t count, const int32_t *fields);
