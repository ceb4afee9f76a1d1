/* Depthwise convolution on NHWC images: any window, dilation, depth multiplier and number of channels; column stride 1 or 2, any row
 * stride.
 */
#pragma once

#include <stdint.h>

/* Rows and columns may be exchanged (with the weights transposed). Steps are bytes. */
struct rvp_depthwise_window {
    int32_t rows, columns; /* of the input */
    int32_t row_step, column_step;
    int32_t out_rows, out_columns;
    int32_t out_row_step, out_column_step;
    int32_t top, left; /* padding */
    int32_t row_dilation, column_dilation;
    int32_t fill;     /* value of the padding: the input's zero point */
    int32_t flip;     /* xored into each byte of the input: 0x80 makes uint8 int8 */
    int32_t clip;     /* as in gemm_s8.S */
    int32_t channels; /* of the output */
    int32_t multiplier;
    int32_t kernel_rows, row_stride;
    int32_t full_words;   /* of weights for each row of the window: see depthwise_window_sums.h */
    int32_t window_words; /* words of a line that a window covers, from its first word on */
    int32_t record;       /* registers of params for a channel of each lane */
    int32_t addends;      /* 2 where weights are sums of two int8 */
    int32_t band;         /* rows of the output whose lines are in scratch at a time */
    int32_t along_rows;   /* whether words below each other are computed together, else words of a row */
};

/* One image; params are as in depthwise_window_sums.h, window is a struct rvp_depthwise_window. The numbers are the stride
 * along the columns and the columns of the window; for many columns also the use of the last word of weights. scratch: see
 * Lines.scratch_bytes of window_lines.py.
 */
typedef void rvp_depthwise_any(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *window);

rvp_depthwise_any rvp_depthwise_s1_k1, rvp_depthwise_s1_k2, rvp_depthwise_s1_k3, rvp_depthwise_s1_k4, rvp_depthwise_s1_k5;
rvp_depthwise_any rvp_depthwise_s1_m0, rvp_depthwise_s1_m1, rvp_depthwise_s1_m2, rvp_depthwise_s1_m3;
rvp_depthwise_any rvp_depthwise_s2_k2, rvp_depthwise_s2_k4, rvp_depthwise_s2_k6, rvp_depthwise_s2_m0, rvp_depthwise_s2_m1;
