/* Pooling of images by windows. */
#pragma once

#include <stdint.h>

/* One NHWC image; only elements inside it count. low and high clip. */
struct arm_dsp_pool {
    int32_t height, width, channels, out_height, out_width;
    int32_t kernel_y, kernel_x, stride_y, stride_x, top, left, low, high;
};

/* At most 255 columns of a window. */
void arm_dsp_avg_pool_s8(const void *x, void *y, const int32_t *fields);
void arm_dsp_avg_pool_u8(const void *x, void *y, const int32_t *fields);

/* At most 32767 elements of a window. */
void arm_dsp_avg_pool_s16(const void *x, void *y, const int32_t *fields);
void arm_dsp_max_pool_s16(const void *x, void *y, const int32_t *fields);
