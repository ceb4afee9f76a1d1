/* Convolutions and fully connected layers with few output channels, or with groups. Inputs are read in place, without panels. */
#pragma once

#include <stdint.h>

/* The fields of few.S. */
struct arm_dsp_few_windows {
    int32_t units, odd, rest, runs, rows, jump, row_jump, pixel, y_pixel, y_channel, zero_point, floor, low;
};

/* An NHWC image and its windows. Windows from row first_y to end_y and column first_x to end_x are inside the image: `inside`. The other
 * windows are copied, padded with `fill`: `copied`. Each of `groups` has group_in input channels and `blocks` blocks of output channels.
 * The last block starts at `last` and may overlap the one before it. A block has `words` words; rows of y are y_row bytes apart. */
struct arm_dsp_few {
    int32_t height, width, channels, out_height, out_width;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t first_y, end_y, first_x, end_x, fill;
    int32_t groups, group_in, group_out, blocks, block_channels, last, words, y_row;
    struct arm_dsp_few_windows inside, copied;
};

/* The functions of few.S, for layers whose windows are rows of one block. */
typedef void arm_dsp_few_rows(const void *x, const int32_t *weights, void *y, const int32_t *fields, int32_t count);

arm_dsp_few_rows arm_dsp_few1_s8_double, arm_dsp_few1_s8_single, arm_dsp_few1_s8_long;
arm_dsp_few_rows arm_dsp_few2_s8_double, arm_dsp_few2_s8_single, arm_dsp_few2_s8_long;
arm_dsp_few_rows arm_dsp_few3_s8_double, arm_dsp_few3_s8_single, arm_dsp_few3_s8_long;
arm_dsp_few_rows arm_dsp_few4_s8_double, arm_dsp_few4_s8_single, arm_dsp_few4_s8_long;
arm_dsp_few_rows arm_dsp_few1_u8_double, arm_dsp_few1_u8_single, arm_dsp_few1_u8_long;
arm_dsp_few_rows arm_dsp_few2_u8_double, arm_dsp_few2_u8_single, arm_dsp_few2_u8_long;
arm_dsp_few_rows arm_dsp_few3_u8_double, arm_dsp_few3_u8_single, arm_dsp_few3_u8_long;
arm_dsp_few_rows arm_dsp_few4_u8_double, arm_dsp_few4_u8_single, arm_dsp_few4_u8_long;

/* `window` is memory for one window: kernel_y * kernel_x * channels bytes. */
typedef void arm_dsp_few_layer(const void *x, const int32_t *weights, void *y, uint8_t *window, const int32_t *fields);

arm_dsp_few_layer arm_dsp_conv1_s8_double, arm_dsp_conv1_s8_single, arm_dsp_conv1_s8_long;
arm_dsp_few_layer arm_dsp_conv2_s8_double, arm_dsp_conv2_s8_single, arm_dsp_conv2_s8_long;
arm_dsp_few_layer arm_dsp_conv3_s8_double, arm_dsp_conv3_s8_single, arm_dsp_conv3_s8_long;
arm_dsp_few_layer arm_dsp_conv4_s8_double, arm_dsp_conv4_s8_single, arm_dsp_conv4_s8_long;
arm_dsp_few_layer arm_dsp_conv1_u8_double, arm_dsp_conv1_u8_single, arm_dsp_conv1_u8_long;
arm_dsp_few_layer arm_dsp_conv2_u8_double, arm_dsp_conv2_u8_single, arm_dsp_conv2_u8_long;
arm_dsp_few_layer arm_dsp_conv3_u8_double, arm_dsp_conv3_u8_single, arm_dsp_conv3_u8_long;
arm_dsp_few_layer arm_dsp_conv4_u8_double, arm_dsp_conv4_u8_single, arm_dsp_conv4_u8_long;
