/* Depthwise convolution of 8-bit images. */
#pragma once

#include <stdint.h>

/* `channels` counts output channels; each input channel feeds `multiplier` of them. */
struct fl_depthwise {
    int32_t height, width, out_height, out_width, channels, multiplier;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t y_pixel, y_channel;
    int32_t input_zero_point, weight_zero_point, zero_point, low, high, single_rounding;
};
/* A whole image of interleaved channels; w is (kernel_height, kernel_width, channels). */
void fl_depthwise_nhwc_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters);
void fl_depthwise_nhwc_u8(const uint8_t *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters);
/* One output plane; w is (kernel_height, kernel_width), `channel` the three values of this plane. */
void fl_depthwise_nchw_s8(const int8_t *x, const int8_t *w, const int32_t *channel, void *y, const void *parameters);
void fl_depthwise_nchw_u8(const uint8_t *x, const int8_t *w, const int32_t *channel, void *y, const void *parameters);
