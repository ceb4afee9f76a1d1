/* Fields of a depthwise convolution of 16-bit activations. */
#pragma once

#include "scale16.h"

struct fl_depthwise16 {
    int32_t height, width, channels;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left, out_width;
    int32_t out_height, low, high;
};
