/* Depthwise convolution on NHWC images, one output at a time, with any stride and dilation. For windows that overlap little, such
 * as one that covers the image.
 */
#pragma once

#include <stdint.h>

struct rvp_depthwise_taps {
    int32_t height, width, channels; /* of the input */
    int32_t out_height, out_width;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t fill; /* value of the padding: the input's zero point */
    int32_t flip; /* xored into each byte of the input: 0x80 makes uint8 int8 */
    int32_t clip; /* as in gemm_s8.S */
};

/* One image; params are as in depthwise_taps.c, taps is a struct rvp_depthwise_taps. scratch: see scratch_bytes of
 * depthwise_taps.py.
 */
void rvp_depthwise_taps(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *taps);
