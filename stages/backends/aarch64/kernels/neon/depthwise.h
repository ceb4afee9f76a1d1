/* Depthwise convolution of NHWC images, some channels at a time. */
#pragma once

#include <stdint.h>

#include "neon_vectors.h"

/* fill   the input's zero point as the tensor has it, in every byte
 * pixel  bytes from a pixel to the next, in input and output
 * mode   how sums are scaled: NEON_ of neon_vectors.h */
struct neon_depthwise {
    struct neon_output output;
    uint8_t fill[16];
    int32_t height, width, pixel, out_height, out_width;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left, mode;
};

/* 3x3, 16 channels: weights is int8 [3][3][16], params int32 [3][16] (bias, multiplier, shift < 0); two roundings. */
void neon_depthwise3x3_s1_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                             const void *parameters);
void neon_depthwise3x3_s1_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                             const void *parameters);
void neon_depthwise3x3_s2_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                             const void *parameters);
void neon_depthwise3x3_s2_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                             const void *parameters);

/* The same of 8 channels: weights is int8 [3][3][8], params int32 [3][8]. */
void neon_depthwise3x3_pairs_s1_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                   const void *parameters);
void neon_depthwise3x3_pairs_s1_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                   const void *parameters);
void neon_depthwise3x3_pairs_s2_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                   const void *parameters);
void neon_depthwise3x3_pairs_s2_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                   const void *parameters);

/* Any window, 8 channels: weights is int16 [kernel_height][kernel_width][8], without zero point; params int32 [3][8]. */
void neon_depthwise_s8(const int8_t *x, const int16_t *weights, const int32_t *params, void *y, const void *parameters);
void neon_depthwise_u8(const uint8_t *x, const int16_t *weights, const int32_t *params, void *y, const void *parameters);
