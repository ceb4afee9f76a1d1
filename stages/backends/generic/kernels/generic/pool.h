/* Average and maximum pooling of 8-bit images. */
#pragma once

#include <stdint.h>

/* Pooling of one image; the dilation is 1. Neighbours in a row are x_pixel (y_pixel) apart, channels x_channel
 * (y_channel). */
struct fl_pool {
    int32_t height, width, out_height, out_width, channels;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t x_pixel, x_channel, y_pixel, y_channel, low, high;
};
void fl_avg_pool_s8(const int8_t *x, void *y, const void *parameters);
void fl_avg_pool_u8(const uint8_t *x, void *y, const void *parameters);
void fl_max_pool_s8(const int8_t *x, void *y, const void *parameters);
void fl_max_pool_u8(const uint8_t *x, void *y, const void *parameters);
