/* Depthwise convolution of an NHWC image, four channels at a time. */
#pragma once

#include <stdint.h>

/* Where the windows lie. In y, in bytes: from a pixel to the next, from an input channel's results to the next one's, and between the
 * `multiplier` results of one. pairs, last, zero_point, floor, low and step are the fields of depthwise_channels.S; words are those of
 * the blocks of one result of each channel. */
struct arm_dsp_channels {
    int32_t height, width, channels, out_height, out_width;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t multiplier, y_pixel, y_group, words;
    int32_t pairs, last, zero_point, floor, low, step;
};

/* `outside` is a pixel of the input's zero point, `taps` is memory for two pointers for each of the pairs. near: the results of neighbouring
 * channels are neighbours. */
typedef void arm_dsp_depthwise_channels(const void *x, const int32_t *blocks, void *y, const void *outside, int32_t *taps,
                                        const int32_t *fields);

arm_dsp_depthwise_channels arm_dsp_depthwise_channels_s8_near, arm_dsp_depthwise_channels_s8_near_long;
arm_dsp_depthwise_channels arm_dsp_depthwise_channels_s8_apart, arm_dsp_depthwise_channels_s8_apart_long;
arm_dsp_depthwise_channels arm_dsp_depthwise_channels_s8_near_once, arm_dsp_depthwise_channels_s8_apart_once;
arm_dsp_depthwise_channels arm_dsp_depthwise_channels_u8_near_once, arm_dsp_depthwise_channels_u8_apart_once;
arm_dsp_depthwise_channels arm_dsp_depthwise_channels_u8_near, arm_dsp_depthwise_channels_u8_near_long;
arm_dsp_depthwise_channels arm_dsp_depthwise_channels_u8_apart, arm_dsp_depthwise_channels_u8_apart_long;
