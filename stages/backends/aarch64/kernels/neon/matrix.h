/* Convolution as a product of matrices: rows of windows, and products without the dot product. */
#pragma once

#include <stdint.h>

/* Positions of windows in an NHWC image. `fill` is the value of padding: the zero point as int8. `flip` is 0x80 to make uint8 int8, else 0.
 * `row` is the length of a gathered row, padded with zeros.
 */
struct neon_windows {
    int32_t height, width, channels;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t out_width, fill, flip, row, weight_zero_point;
};

/* The windows of output pixels first, first + 1, ..., one in each row, as int8. Where the weights have a zero point,
 * offsets[i] is added to the sums of row i; otherwise offsets is not used. */
void neon_windows(const void *x, int8_t *rows, int32_t *offsets, int32_t first, int32_t count, const void *windows);

/* y = requantize(bias + offsets + x * weights), see gemm_4x4.S; `has_offsets` tells whether offsets count. */
void neon_gemm_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                  int32_t has_offsets, int32_t rows, const void *gemm);
/* For weights with pairs of -128. */
void neon_gemm_s8_wide(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                       int32_t has_offsets, int32_t rows, const void *gemm);
