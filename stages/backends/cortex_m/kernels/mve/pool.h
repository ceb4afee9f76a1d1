/* Pooling of NHWC images. */
#pragma once

#include <stdint.h>

struct mve_pool {
    int32_t height, width, channels, out_height, out_width;
    int32_t kernel_y, kernel_x, stride_y, stride_x, top, left;
    int32_t low, high;
};

/* Padding never counts. Averages: at most 255 elements in a window, 32767 of int16; halves go away from zero. */
typedef void mve_pooling(const void *x, void *y, const int32_t *fields);

mve_pooling mve_max_pool_s8, mve_max_pool_u8, mve_avg_pool_s8, mve_avg_pool_u8, mve_max_pool_s16, mve_avg_pool_s16;
