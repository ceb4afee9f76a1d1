/* Shared by all families: a product of two int8 matrices that are both computed at run time.
 *
 * The including file defines
 *
 *   MM_ROWS, MM_UNITS  rows of x and columns of w in a tile
 *   MM_CHUNK           consecutive elements of the depth in a packed operand
 *   MM_CENTRED         optional: the zero point is subtracted while packing
 *   mm_element         type of packed elements: int16_t with MM_CENTRED, else int8_t
 *   mm_tile            (x, w, chunks, sums, pitch): sums[row * pitch + unit] of the products of a tile
 *   mm_finish          (y, sums, bias, offset, count, p): a row of results from sums + bias + offset; with MM_CENTRED from sums
 *   mm_chunk           (to, from, less): packs MM_CHUNK consecutive elements; `to` is a multiple of their size. `less` is the zero
 *                      point, used with MM_CENTRED only
 *   mm_columns         (to, from, step, less): packs [MM_UNITS][MM_CHUNK] from MM_CHUNK rows of MM_UNITS consecutive elements, `step`
 *                      apart. Returns false and does nothing if the alignment does not allow it. `less` as in mm_chunk
 *   mm_sums            without MM_CENTRED: (packed, group, chunks, sums): the sums of `group` packed vectors
 *
 * All of w is packed first, then the rows of x for one tile:
 *
 *      w    [units / MM_UNITS][chunks][MM_UNITS][MM_CHUNK]        x    [chunks][MM_ROWS][MM_CHUNK]
 *
 * Missing elements are packed so that they add 0. With S the sums of the packed vectors,
 *
 *      sum of (x - z0) * (w - z1) = sum of x * w + bias + offset,   bias = z0 * z1 * depth - z0 * S(w),   offset = -z1 * S(x)
 *
 * Results are scaled by multiplier * 2^(shift - 31) with two roundings. shift is below 0, and twice a sum fits 32 bits.
 */
#pragma once

#include <stdint.h>

struct fl_matmul_image {
    int32_t rows, depth, units, x_row, x_step, w_unit, w_step;
    int32_t zero_point0, zero_point1, multiplier, shift, zero_point, low, high;
};

#define MM_INLINE static inline __attribute__((always_inline))
#define MM_APART static __attribute__((noinline)) /* not inlined: uses all registers */

MM_INLINE void mm_finish(int8_t *y, const int32_t *sums, const int32_t *bias, int32_t offset, int32_t count,
                         const struct fl_matmul_image *p);

/* `count` of `group` vectors of `depth` elements, `apart` in memory and with `step` between their elements, packed as
 * [chunks][group][MM_CHUNK]. */
MM_APART void mm_pack(mm_element *to, const int8_t *from, int32_t group, int32_t count, int32_t apart, int32_t step, int32_t depth,
                       int32_t zero_point)
{
    (void)zero_point;
#ifdef MM_CENTRED
    const int32_t less = zero_point;
#else
    const int32_t less = 0;
#endif
    int32_t done = 0; /* of the depth */
    if (group == MM_UNITS && count >= group && apart == 1 && step != 1) {
        while (depth - done >= MM_CHUNK && mm_columns(to, from, step, less)) {
            to += MM_UNITS * MM_CHUNK;
            from += MM_CHUNK * step;
            done += MM_CHUNK;
        }
    }
    for (int32_t v = 0; v < group; v++) {
        mm_element *at = to + v * MM_CHUNK;
        const int8_t *p = from + v * apart;
        int32_t left = depth - done;
        if (v < count) {
            if (step == 1) {
                for (; left >= MM_CHUNK; left -= MM_CHUNK, at += group * MM_CHUNK, p += MM_CHUNK) {
                    mm_chunk(at, p, less);
                }
            } else {
                for (; left >= MM_CHUNK; left -= MM_CHUNK, at += group * MM_CHUNK) {
#pragma GCC unroll 16
                    for (int32_t e = 0; e < MM_CHUNK; e++, p += step) {
                        at[e] = (mm_element)(*p - less);
                    }
                }
            }
            if (left > 0) {
                for (int32_t e = 0; e < MM_CHUNK; e++, p += step) {
                    at[e] = e < left ? (mm_element)(*p - less) : 0;
                }
            }
        } else {
            for (; left > 0; left -= MM_CHUNK, at += group * MM_CHUNK) {
                for (int32_t e = 0; e < MM_CHUNK; e++) {
                    at[e] = 0;
                }
            }
        }
    }
}

/* A panel of rows times all of w. */
MM_APART void mm_tiles(const mm_element *panel, const mm_element *w, int32_t chunks, int32_t blocks, int32_t *sums)
{
    const int32_t pitch = blocks * MM_UNITS;
    for (int32_t b = 0; b < blocks; b++) {
        mm_tile(panel, w, chunks, sums, pitch);
        w += chunks * MM_UNITS * MM_CHUNK;
        sums += MM_UNITS;
    }
}

MM_APART void mm_results(int8_t *y, const int32_t *sums, const int32_t *bias, int32_t offset, const struct fl_matmul_image *p)
{
    mm_finish(y, sums, bias, offset, p->units, p);
}

/* Scratch: packed w, the packed rows, their sums, and without MM_CENTRED a bias for each unit and an offset for each row. */
MM_INLINE void mm_product(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters)
{
    const struct fl_matmul_image p = *(const struct fl_matmul_image *)parameters; /* local copy: y may alias it */
    const int32_t chunks = (p.depth + MM_CHUNK - 1) / MM_CHUNK, blocks = (p.units + MM_UNITS - 1) / MM_UNITS;
    const int32_t block = chunks * MM_UNITS * MM_CHUNK;
    mm_element *const packed = (mm_element *)scratch, *const panel = packed + blocks * block;
    int32_t *const sums = (int32_t *)(panel + chunks * MM_ROWS * MM_CHUNK), *const bias = sums + MM_ROWS * blocks * MM_UNITS;
#ifndef MM_CENTRED
    int32_t *const offset = bias + blocks * MM_UNITS;
#endif
    for (int32_t b = 0; b < blocks; b++) {
        mm_element *const to = packed + b * block;
        mm_pack(to, w + b * MM_UNITS * p.w_unit, MM_UNITS, p.units - b * MM_UNITS, p.w_unit, p.w_step, p.depth, p.zero_point1);
#ifndef MM_CENTRED
        int32_t *const own = bias + b * MM_UNITS;
        mm_sums(to, MM_UNITS, chunks, own);
        for (int32_t u = 0; u < MM_UNITS; u++) {
            own[u] = p.zero_point0 * (p.zero_point1 * p.depth - own[u]);
        }
#endif
    }
    for (int32_t r = 0; r < p.rows; r += MM_ROWS) {
        mm_pack(panel, x + r * p.x_row, MM_ROWS, p.rows - r, p.x_row, p.x_step, p.depth, p.zero_point0);
#ifndef MM_CENTRED
        mm_sums(panel, MM_ROWS, chunks, offset);
        for (int32_t i = 0; i < MM_ROWS; i++) {
            offset[i] *= -p.zero_point1;
        }
#endif
        mm_tiles(panel, packed, chunks, blocks, sums);
        for (int32_t i = 0; i < MM_ROWS && r + i < p.rows; i++) {
            int32_t beside = 0;
#ifndef MM_CENTRED
            beside = offset[i];
#endif
            mm_results(y + (r + i) * p.units, sums + i * blocks * MM_UNITS, bias, beside, &p);
        }
    }
}
