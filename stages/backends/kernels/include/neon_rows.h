/* Computes all rows of a product, four at a time, with a function as in neon_rows_asm.h. */
#pragma once

#include <stddef.h>

#include "neon_gemm.h"

typedef void neon_tiles(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                        const void *gemm, int32_t tiles);

/* Four rows at a time with `four`, then the remaining rows with `rest`, by their number. */
static inline void neon_all_rows(neon_tiles *four, neon_tiles *const *rest, const int8_t *x, const int8_t *weights,
                                 const int32_t *params, int8_t *y, const int32_t *offsets, int32_t rows,
                                 const struct neon_gemm *gemm)
{
    const int32_t whole = rows & ~3;
    if (whole != 0) {
        four(x, weights, params, y, offsets, gemm, whole / 4);
    }
    if (rows != whole) {
        rest[rows - whole](x + (ptrdiff_t)whole * gemm->x_row, weights, params, y + (ptrdiff_t)whole * gemm->y_row,
                           offsets == NULL ? NULL : offsets + whole, gemm, 1);
    }
}
