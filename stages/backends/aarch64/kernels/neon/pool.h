/* Pooling of one NHWC image of at least 16 channels. */
#pragma once

#include <stdint.h>

#include "neon_vectors.h"

/* Averages: the zero point turns the type's values into int8. */
struct neon_pool {
    struct neon_output output;
    int32_t height, width, out_height, out_width, channels;
    int32_t kernel_height, kernel_width, stride_y, stride_x, top, left;
};

void neon_avg_pool_s8(const int8_t *x, void *y, const void *parameters);
void neon_avg_pool_u8(const uint8_t *x, void *y, const void *parameters);
void neon_max_pool(const void *x, void *y, const void *parameters);
