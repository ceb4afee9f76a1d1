/* Gathers windows into rows, from which convolution is a product of matrices. */
#include "bytes.h"
#include "gemm.h"
#include "runs.h"

/* Taps first ... last - 1 of a window's rows or columns are inside the image. */
struct taps {
    int32_t first, last;
};

/* The range for `taps` taps from `start` on, `step` apart, in an image of `size` rows or columns. */
MVE_INLINE struct taps inside(int32_t start, int32_t step, int32_t taps, int32_t size)
{
    const int32_t first = start < 0 ? (step - 1 - start) / step : 0;
    const int32_t last = start < size ? (size - start + step - 1) / step : 0;
    return (struct taps){first, last < taps ? last : taps};
}

/* The window that starts at (y, x) of the image. */
MVE_INLINE void window(uint8_t *to, const uint8_t *image, int32_t y, int32_t x, int is_inside, const struct mve_windows *g,
                       int flips, uint8x16_t flip)
{
    struct taps rows = {0, g->kernel_y}, columns = {0, g->kernel_x};
    if (!is_inside) {
        rows = inside(y, g->dilation_y, g->kernel_y, g->height);
        columns = inside(x, g->dilation_x, g->kernel_x, g->width);
        (void)mve_set(to, g->depth, vdupq_n_u8((uint8_t)g->fill));
        if (rows.first >= rows.last || columns.first >= columns.last) {
            return;
        }
    }
    const int32_t to_step = g->kernel_x * g->channels, from_step = g->dilation_y * g->line;
    const int32_t count = rows.last - rows.first;
    const uint8_t *const row = image + (y + rows.first * g->dilation_y) * g->line;
    to += rows.first * to_step;
    if (g->neighbours) {
        const int32_t bytes = (columns.last - columns.first) * g->channels;
        const uint8_t *const from = row + (x + columns.first) * g->channels;
        copy_runs(to + columns.first * g->channels, from, count, bytes, to_step, from_step, flips, flip);
        return;
    }
    for (int32_t kx = columns.first; kx < columns.last; kx++) {
        const uint8_t *const from = row + (x + kx * g->dilation_x) * g->pixel;
        copy_runs(to + kx * g->channels, from, count, g->channels, to_step, from_step, flips, flip);
    }
}

MVE_INLINE void windows(const uint8_t *image, int8_t *rows, int32_t *offsets, int32_t first, int32_t count,
                        const struct mve_windows *g, int flips)
{
    const uint8x16_t flip = vdupq_n_u8((uint8_t)g->flip);
    const int32_t last_y = g->height - (g->kernel_y - 1) * g->dilation_y;
    const int32_t last_x = g->width - (g->kernel_x - 1) * g->dilation_x;
    const int32_t end_x = g->out_width * g->stride_x - g->left;
    int32_t y = first / g->out_width * g->stride_y - g->top, x = first % g->out_width * g->stride_x - g->left;
    for (int32_t i = 0; i < count; i++) {
        const int is_inside = y >= 0 && y < last_y && x >= 0 && x < last_x;
        window((uint8_t *)rows, image, y, x, is_inside, g, flips, flip);
        if (g->weight_zero_point != 0) {
            offsets[i] = -g->weight_zero_point * mve_sum(rows, g->depth);
        }
        rows += g->row;
        x += g->stride_x;
        if (x == end_x) {
            x = -g->left;
            y += g->stride_y;
        }
    }
}

void mve_windows_s8(const void *x, int8_t *rows, int32_t *offsets, int32_t first, int32_t count, const int32_t *geometry)
{
    windows(x, rows, offsets, first, count, (const struct mve_windows *)geometry, 0);
}

void mve_windows_u8(const void *x, int8_t *rows, int32_t *offsets, int32_t first, int32_t count, const int32_t *geometry)
{
    windows(x, rows, offsets, first, count, (const struct mve_windows *)geometry, 1);
}
