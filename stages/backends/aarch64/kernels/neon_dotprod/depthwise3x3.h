/* Depthwise 3x3 with the dot product. */
#pragma once

#include <stdint.h>

/* Stride 1, 16 channels of an NHWC image. weights is int8 [2][3][16][4]: for each column of the window and channel the weights of
 * its rows as (w0, w1, w2, 0), then as (0, w0, w1, w2). params is int32 [3][16] (bias, multiplier, shift < 0); two roundings.
 * parameters is struct neon_depthwise (../neon/depthwise.h). */
void neon_dotprod_depthwise3x3_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                  const void *parameters);
void neon_dotprod_depthwise3x3_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                  const void *parameters);
