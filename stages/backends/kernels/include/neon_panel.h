/* Products of interleaved rows (neon_panel_asm.h), and their panels: tiles of eight rows. If one to four rows remain, the last tile
 * has four.
 */
#pragma once

#include <stddef.h>
#include <string.h>

#include "neon_gemm.h"
#include "neon_vectors.h"

typedef void neon_panel_tiles(const int8_t *panel, const int8_t *weights, const int32_t *params, void *y, const int32_t *offsets,
                              const void *gemm, int32_t tiles, int32_t last);

/* Interleaves four rows that are `row` bytes apart, a chunk of each in turn. In the panel, these groups are `step` bytes apart. */
typedef void neon_interleave_four(const int8_t *x, ptrdiff_t row, int8_t *to, ptrdiff_t step, int32_t depth);

/* Number of rows in tiles of eight, of which the last may be partly used. The other rows are in one tile of four. */
static inline int32_t neon_rows_by_eight(int32_t rows)
{
    return rows % 8 > 4 ? rows : rows & ~7;
}

/* All rows of a product, with `four` and `eight` for tiles of so many rows. */
static inline void neon_panel_product(neon_panel_tiles *four, neon_panel_tiles *eight, const int8_t *panel, const int8_t *weights,
                                      const int32_t *params, void *y, const int32_t *offsets, int32_t rows,
                                      const struct neon_gemm *gemm)
{
    const int32_t by_eight = neon_rows_by_eight(rows);
    if (by_eight != 0) {
        eight(panel, weights, params, y, offsets, gemm, (by_eight + 7) / 8, (by_eight - 1) % 8 + 1);
    }
    if (by_eight != rows) {
        four(panel + (ptrdiff_t)by_eight * gemm->depth, weights, params, (int8_t *)y + (ptrdiff_t)by_eight * gemm->y_row,
             offsets == NULL ? NULL : offsets + by_eight, gemm, 1, rows - by_eight);
    }
}

/* As neon_interleave_four for fewer rows; zeros stand for the others. */
NEON_INLINE void neon_interleave_few(const int8_t *x, ptrdiff_t row, int32_t count, int8_t *to, ptrdiff_t step, int32_t depth,
                                     int32_t chunk)
{
    for (int32_t k = 0; k < depth; k += chunk) {
        memset(to, 0, 4 * (size_t)chunk);
        for (int32_t i = 0; i < count; i++) {
            memcpy(to + chunk * i, x + i * row + k, (size_t)chunk);
        }
        to += step;
    }
}

/* The panel of `count` rows that are gemm->x_row bytes apart, `chunk` bytes of each in turn. */
NEON_INLINE void neon_interleave_panel(neon_interleave_four *four, int32_t chunk, const int8_t *rows, int8_t *panel, int32_t count,
                                       const struct neon_gemm *gemm)
{
    const int32_t by_eight = neon_rows_by_eight(count);
    for (int32_t first = 0; first < count; first += 4) {
        const int32_t in_eight = first < by_eight;
        const int32_t within = in_eight ? first % 8 : 0;
        int8_t *to = panel + (ptrdiff_t)(first - within) * gemm->depth + chunk * within;
        const ptrdiff_t step = (in_eight ? 8 : 4) * chunk;
        if (first + 4 <= count) {
            four(rows, gemm->x_row, to, step, gemm->depth);
        } else {
            neon_interleave_few(rows, gemm->x_row, count - first, to, step, gemm->depth, chunk);
        }
        rows += 4 * (ptrdiff_t)gemm->x_row;
    }
}
