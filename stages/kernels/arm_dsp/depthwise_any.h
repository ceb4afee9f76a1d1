/* Depthwise convolution of a plane by windows of any kind. */
#ifndef FIRMLINE_ARM_DSP_DEPTHWISE_ANY_H
#define FIRMLINE_ARM_DSP_DEPTHWISE_ANY_H

#include <stdint.h>

/* Steps in the plane are elements: from an output row and column to the next, from a row of taps to the next. Steps in y are
 * bytes. zero_point, floor and low as in gemm.S. */
struct arm_dsp_depthwise {
    int32_t rows, columns, kernel_y, pairs;
    int32_t row_step, column_step, tap_step;
    int32_t y_row, y_column;
    int32_t zero_point, floor, low;
};

/* channel: kernel_y rows of `pairs` words, two int16 taps each (0 behind the last); bias, scale (rounding.py): multiplier, rounder;
 * for `long` left, multiplier, post, rounder. */
void arm_dsp_depthwise_plane(const int16_t *plane, const int32_t *channel, void *y, const int32_t *fields);
void arm_dsp_depthwise_plane_long(const int16_t *plane, const int32_t *channel, void *y, const int32_t *fields);
void arm_dsp_depthwise_plane_once(const int16_t *plane, const int32_t *channel, void *y, const int32_t *fields);

#endif
