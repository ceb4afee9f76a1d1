/* Products of matrices with smmla. If `has_offsets` is 0, offsets are ignored. */
#pragma once

#include <stdint.h>

/* y = requantize(bias + offsets + panel * weights), see gemm_8x12.S. */
void neon_i8mm_interleaved(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                           int32_t has_offsets, int32_t rows, const void *gemm);

/* A panel of rows that are gemm->x_row bytes apart: tiles of eight rows, the last tile of four if that is enough, each
 * [depth / 8][rows of the tile][8]. Zeros stand for rows that the last tile lacks. */
void neon_i8mm_interleave(const int8_t *rows, int8_t *panel, int32_t count, const void *gemm);
