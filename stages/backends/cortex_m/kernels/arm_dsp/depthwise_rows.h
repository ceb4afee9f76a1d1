/* Depthwise convolution of a plane by windows of five or seven columns. */
#pragma once

#include <stdint.h>

/* Steps in the plane are elements: from an output row and column to the next, from a row of taps to the next. Steps in y are
 * bytes. zero_point, floor and low as in gemm.S. */
struct arm_dsp_depthwise {
    int32_t rows, columns, kernel_y, pairs;
    int32_t row_step, column_step, tap_step;
    int32_t y_row, y_column;
    int32_t zero_point, floor, low;
};

/* Declarations of the functions in depthwise_rows.S; see there. */
typedef void arm_dsp_depthwise_rows(const int16_t *plane, const int32_t *channel, void *out, const int32_t *fields);

arm_dsp_depthwise_rows arm_dsp_depthwise_rows5, arm_dsp_depthwise_rows5_long;
arm_dsp_depthwise_rows arm_dsp_depthwise_rows7, arm_dsp_depthwise_rows7_long;
