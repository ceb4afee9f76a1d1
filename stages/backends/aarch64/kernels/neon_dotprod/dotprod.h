/* Products of matrices with the dot product. If `has_offsets` is 0, offsets are ignored. */
#pragma once

#include <stdint.h>

/* y = requantize(bias + offsets + x * weights), rows of x as they are, see gemm_4x16.S. */
void neon_dotprod_hybrid(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                         int32_t has_offsets, int32_t rows, const void *gemm);

/* The same of a panel of rows, see gemm_8x12.S. */
void neon_dotprod_interleaved(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y,
                              const int32_t *offsets, int32_t has_offsets, int32_t rows, const void *gemm);

/* A panel of rows that are gemm->x_row bytes apart: tiles of eight rows, the last tile of four if that is enough, each
 * [depth / 4][rows of the tile][4]. Zeros stand for rows that the last tile lacks. */
void neon_dotprod_interleave(const int8_t *rows, int8_t *panel, int32_t count, const void *gemm);
