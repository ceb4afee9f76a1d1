/* Means over pixels, requantized; the division is part of the multiplier. */
#pragma once

#include <stdint.h>

/* The pixels of a mean: `rows` rows of `columns` (at most 255), with steps in bytes. `offset` is the input's zero point times their number.
 * multiplier and shift are as in requantize.h; low and high clip.
 */
struct arm_dsp_mean {
    int32_t rows, row_step, columns, column_step;
    int32_t offset, multiplier, shift, single_rounding, zero_point, low, high;
};

/* `count` means of neighbours. */
void arm_dsp_mean_rows_s8(const void *x, void *y, int32_t count, const int32_t *fields);
void arm_dsp_mean_rows_u8(const void *x, void *y, int32_t count, const int32_t *fields);
/* `count` consecutive means, each over columns * rows consecutive elements. */
void arm_dsp_mean_planes_s8(const void *x, void *y, int32_t count, const int32_t *fields);
void arm_dsp_mean_planes_u8(const void *x, void *y, int32_t count, const int32_t *fields);
