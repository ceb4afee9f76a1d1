/* Grouped convolutions with two input channels per group. */
#pragma once

#include <stdint.h>

/* NHWC images. A block has one or two outputs of two neighbouring groups; those of the second group are `apart` bytes behind. The words of
 * a block: bytes from a pixel to its inputs and to its outputs, biases, weights by tap, both words of each scale. zero: the negative zero
 * point of the input in both halves. */
struct arm_dsp_twos {
    int32_t height, width, channels, out_height, out_width;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t images, blocks, apart, out_channels, zero;
    int32_t zero_point, floor, low;
};

typedef void arm_dsp_twos_layer(const void *x, const int32_t *weights, void *y, const int32_t *fields);

/* With blocks of one or two outputs. */
arm_dsp_twos_layer arm_dsp_twos_one_s8, arm_dsp_twos_one_u8, arm_dsp_twos_two_s8, arm_dsp_twos_two_u8;
