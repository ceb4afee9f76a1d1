/* All rows of a product, four at a time. */
#include "matrix.h"
#include "neon_rows.h"

neon_tiles neon_4x4_r1, neon_4x4_r2, neon_4x4_r3, neon_4x4_r4;
neon_tiles neon_4x4_r1_wide, neon_4x4_r2_wide, neon_4x4_r3_wide, neon_4x4_r4_wide;

void neon_gemm_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                  int32_t has_offsets, int32_t rows, const void *gemm)
{
    static neon_tiles *const rest[] = {NULL, neon_4x4_r1, neon_4x4_r2, neon_4x4_r3};
    neon_all_rows(neon_4x4_r4, rest, x, weights, params, y, has_offsets ? offsets : NULL, rows, gemm);
}

void neon_gemm_s8_wide(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                       int32_t has_offsets, int32_t rows, const void *gemm)
{
    static neon_tiles *const rest[] = {NULL, neon_4x4_r1_wide, neon_4x4_r2_wide, neon_4x4_r3_wide};
    neon_all_rows(neon_4x4_r4_wide, rest, x, weights, params, y, has_offsets ? offsets : NULL, rows, gemm);
}
