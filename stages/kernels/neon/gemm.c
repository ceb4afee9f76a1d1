/* All rows of a product, four at a time. */
#include <stddef.h>

#include "matrix.h"
#include "neon_gemm.h"

typedef void tile(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                  const void *gemm, int32_t tiles);

tile neon_4x4_r1, neon_4x4_r2, neon_4x4_r3, neon_4x4_r4;
tile neon_4x4_r1_wide, neon_4x4_r2_wide, neon_4x4_r3_wide, neon_4x4_r4_wide;

/* Four rows at a time with `four`, then what is left with `rest` by its number of rows. */
static void multiply(tile *four, tile *const *rest, const int8_t *x, const int8_t *weights, const int32_t *params, int8_t *y,
                     const int32_t *offsets, int32_t rows, const struct neon_gemm *gemm)
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

void neon_gemm_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                  int32_t has_offsets, int32_t rows, const void *gemm)
{
    static tile *const rest[] = {NULL, neon_4x4_r1, neon_4x4_r2, neon_4x4_r3};
    multiply(neon_4x4_r4, rest, x, weights, params, y, has_offsets ? offsets : NULL, rows, gemm);
}

void neon_gemm_s8_wide(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                       int32_t has_offsets, int32_t rows, const void *gemm)
{
    static tile *const rest[] = {NULL, neon_4x4_r1_wide, neon_4x4_r2_wide, neon_4x4_r3_wide};
    multiply(neon_4x4_r4_wide, rest, x, weights, params, y, has_offsets ? offsets : NULL, rows, gemm);
}
