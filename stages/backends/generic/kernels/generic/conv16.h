/* Convolution and matrix product of 16-bit activations with 8-bit weights. */
#pragma once

#include <stdint.h>

/* One image, NHWC, in groups: output channel o reads `depth` channels from o / units * depth on. Weights are
 * [out_channels][kernel_height][kernel_width][depth], scales [out_channels][2]: a multiplier of 15 bits and its shift.
 *
 *      y = clamp((sum * multiplier + 2^(14 - shift)) >> (15 - shift)), the sum of 64 bits with the bias in it
 */
struct fl_conv16 {
    int32_t height, width, channels, out_height, out_width, out_channels, depth, units;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t low, high;
};
void fl_conv16(const int16_t *x, const int8_t *w, const int64_t *bias, const int32_t *scales, int16_t *y,
               const void *parameters);

/* One row: y[j] = clamp(the integer nearest to (bias[j] + sum over k of x[k] * w[j][k]) * real[j], halves away from zero). */
struct fl_dense16 {
    int32_t units, depth, low, high;
};
void fl_dense16(const int16_t *x, const int8_t *w, const int64_t *bias, const double *real, int16_t *y,
                const void *parameters);
