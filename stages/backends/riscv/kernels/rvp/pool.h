/* AVERAGE_POOL_2D on NHWC images. */
#pragma once

#include <stdint.h>

/* All in elements; `lowest` and `highest` bound the output. */
struct rvp_pool {
    int32_t height, width, out_height, out_width, channels;
    int32_t kernel_y, kernel_x, stride_y, stride_x;
    int32_t top, left;
    int32_t lowest, highest;
};

/* One image each. Channels are whole registers, or whole lanes (RV64); a window has at most 255 elements, so that sums fit
 * 16 bits. */
typedef void rvp_pool2d(const void *x, void *y, const int32_t *parameters);

rvp_pool2d rvp_avg_pool_s8, rvp_avg_pool_u8, rvp_avg_pool_lanes_s8, rvp_avg_pool_lanes_u8;
