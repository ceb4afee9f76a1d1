/* Depthwise convolution of sixteen channels at a time. */
#pragma once

#include "depthwise_image.h"

/* Results are flipped as the image is. zero_point, low and high are for the output as int8. */
struct mve_depthwise {
    struct mve_image image;
    int32_t zero_point, low, high, out_height, out_width;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top;
};

/* A row of outputs of 3x3: depthwise3x3.S. */
typedef void mve_row3x3(uint8_t *y, const int8_t *top, const int8_t *middle, const int8_t *bottom, const int32_t *constants,
                        int32_t channels, const struct mve_depthwise *d);

mve_row3x3 mve_row3x3_exact_s1, mve_row3x3_exact_s2, mve_row3x3_lowered_s1, mve_row3x3_lowered_s2;
mve_row3x3 mve_row3x3_exact_s1_clipped, mve_row3x3_exact_s2_clipped;
mve_row3x3 mve_row3x3_lowered_s1_clipped, mve_row3x3_lowered_s2_clipped;

/* All outputs of `channels` (1 to 16) channels, for one row function each. */
typedef void mve_depthwise(const void *x, const int32_t *constants, void *y, int32_t channels, int8_t *lines,
                           const int32_t *fields);

mve_depthwise mve_depthwise3x3_exact_s1, mve_depthwise3x3_exact_s2, mve_depthwise3x3_lowered_s1, mve_depthwise3x3_lowered_s2;
mve_depthwise mve_depthwise3x3_exact_s1_clipped, mve_depthwise3x3_exact_s2_clipped;
mve_depthwise mve_depthwise3x3_lowered_s1_clipped, mve_depthwise3x3_lowered_s2_clipped;
