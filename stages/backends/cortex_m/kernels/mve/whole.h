/* Depthwise convolution with a single window, which is the image or a part of it: whole.S. */
#pragma once

#include <stdint.h>

/* Channels of the image, at least four; vectors of eight taps; low and high clip. */
struct mve_whole {
    int32_t channels, chunks, zero_point, low, high;
};

typedef void mve_depthwise_whole(const void *x, const int32_t *params, const int8_t *weights, const uint16_t *offsets, void *y,
                                 const int32_t *fields);

mve_depthwise_whole mve_depthwise_whole_s8, mve_depthwise_whole_u8;
