/* Element-wise operators. */
#pragma once

#include <stdint.h>

#include "neon_vectors.h"

/* As the operator add of the generic kernels. The inputs' shifts are 0 or negative, the output's shift is negative. */
struct neon_add {
    struct neon_output output;
    int32_t zero_point0, zero_point1, left_shift, multiplier0, shift0, multiplier1, shift1, multiplier, shift;
};

/* `count` elements, at least 16. y may be x0 or x1. */
void neon_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, const void *parameters);
void neon_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, const void *parameters);
void neon_sub_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, const void *parameters);
void neon_sub_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, const void *parameters);
