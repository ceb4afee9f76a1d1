/* The loops of pool_rows.h. A family's C file includes it after its functions. */
#pragma once

#include "pool_rows.h"

#define POOL_INLINE static inline __attribute__((always_inline))

/* The part of `size` steps from `first` on that is in [0, end). */
POOL_INLINE int32_t pool_inside(int32_t first, int32_t size, int32_t end)
{
    const int32_t last = first + size < end ? first + size : end;
    return last - (first < 0 ? 0 : first);
}

/* Whether the bounds are narrower than the type. */
POOL_INLINE int pool_is_clipped(const struct fl_pool_rows *p)
{
    return p->high - p->low != 255;
}

/* The number of image rows in the window at `oy`; *from is the first. */
POOL_INLINE int32_t pool_rows_of(const uint8_t *x, int32_t oy, const struct fl_pool_rows *p, const uint8_t **from)
{
    const int32_t row = oy * p->stride_y - p->top;
    *from = x + (row < 0 ? 0 : row) * p->width * p->channels;
    return pool_inside(row, p->kernel_height, p->height);
}

POOL_INLINE void pool_max_rows(const uint8_t *x, uint8_t *y, uint8_t *line, const int32_t *fields, int is_unsigned)
{
    const struct fl_pool_rows p = *(const struct fl_pool_rows *)fields; /* local copy: y may alias it */
    const int32_t before = p.left * p.channels, row = p.width * p.channels, out_row = p.out_width * p.channels;
    const int lowest = is_unsigned ? 0 : 0x80, clipped = pool_is_clipped(&p);
    memset(line, lowest, (size_t)before);
    memset(line + before + row, lowest, (size_t)(p.line - before - row));
    for (int32_t oy = 0; oy < p.out_height; oy++) {
        const uint8_t *from;
        const int32_t rows = pool_rows_of(x, oy, &p, &from);
        pool_maxima(line + before, from, rows, row, row, is_unsigned);
        if (p.stride_x == 1) {
            pool_maxima(y, line, p.kernel_width, p.channels, out_row, is_unsigned);
        } else {
            pool_strided(y, line, &p, is_unsigned);
        }
        if (clipped) {
            pool_clip(y, out_row, &p, is_unsigned);
        }
        y += out_row;
    }
}

/* `pixels` pixels of an output row, from `ox` on. Their windows have the same number of columns. */
POOL_INLINE uint8_t *pool_mean_pixels(uint8_t *y, const int16_t *line, int32_t ox, int32_t pixels, const struct pool_mean *by,
                                      const struct fl_pool_rows *p, int is_unsigned)
{
    const int16_t *from = line + ox * p->stride_x * p->channels;
    const int32_t together = p->stride_x == 1 ? pixels * p->channels : p->channels;
    for (uint8_t *const end = y + pixels * p->channels; y != end; y += together) {
        pool_means(y, from, together, by, p, is_unsigned);
        from += p->stride_x * p->channels;
    }
    return y;
}

POOL_INLINE void pool_average_rows(const uint8_t *x, uint8_t *y, int16_t *line, const int32_t *fields, int is_unsigned)
{
    const struct fl_pool_rows p = *(const struct fl_pool_rows *)fields; /* local copy: y may alias it */
    const int32_t before = p.left * p.channels, row = p.width * p.channels, clipped = pool_is_clipped(&p);
    memset(line, 0, (size_t)(2 * before));
    memset(line + before + row, 0, (size_t)(2 * (p.line - before - row)));
    int32_t elements = 1;
    struct pool_mean by = pool_mean_of(elements, is_unsigned);
    for (int32_t oy = 0; oy < p.out_height; oy++) {
        const uint8_t *from;
        uint8_t *const first = y;
        const int32_t rows = pool_rows_of(x, oy, &p, &from);
        pool_sums(line + before, from, rows, row, row, is_unsigned);
        for (int32_t ox = 0; ox < p.out_width;) {
            const int32_t columns = pool_inside(ox * p.stride_x - p.left, p.kernel_width, p.width);
            int32_t next = ox + 1;
            while (next < p.out_width && pool_inside(next * p.stride_x - p.left, p.kernel_width, p.width) == columns) {
                next++;
            }
            if (rows * columns != elements) {
                elements = rows * columns;
                by = pool_mean_of(elements, is_unsigned);
            }
            y = pool_mean_pixels(y, line, ox, next - ox, &by, &p, is_unsigned);
            ox = next;
        }
        if (clipped) {
            pool_clip(first, p.out_width * p.channels, &p, is_unsigned);
        }
    }
}
