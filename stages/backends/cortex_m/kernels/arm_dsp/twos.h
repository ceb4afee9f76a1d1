/* Grouped convolutions with two input channels per group. */
#pragma once

#include <stdint.h>

/* NHWC images. Groups are computed in `pairs`; the last pair starts at group last_pair. Each of `group_out` outputs of a group are
 * computed in `blocks` of one or two; the last block starts at last_out. A block has `words` words. zero: the negative zero point of
 * the input in both halves. */
struct arm_dsp_twos {
    int32_t height, width, channels, out_height, out_width;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t images, pairs, last_pair, group_out, blocks, last_out, words, zero;
    int32_t zero_point, floor, low;
};

typedef void arm_dsp_twos_layer(const void *x, const int32_t *weights, void *y, const int32_t *fields);

/* With blocks of one or two outputs. */
arm_dsp_twos_layer arm_dsp_twos_one_s8, arm_dsp_twos_one_u8, arm_dsp_twos_two_s8, arm_dsp_twos_two_u8;
