/* All rows of a product, four at a time. */
#include "dotprod.h"
#include "neon_rows.h"

neon_tiles neon_dotprod_4x16_r1, neon_dotprod_4x16_r2, neon_dotprod_4x16_r3, neon_dotprod_4x16_r4;

void neon_dotprod_hybrid(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                         int32_t has_offsets, int32_t rows, const void *gemm)
{
    static neon_tiles *const rest[] = {NULL, neon_dotprod_4x16_r1, neon_dotprod_4x16_r2, neon_dotprod_4x16_r3};
    neon_all_rows(neon_dotprod_4x16_r4, rest, x, weights, params, y, has_offsets ? offsets : NULL, rows, gemm);
}
