/* Windows of an image as rows of a matrix, from which convolution is a product of matrices.
 *
 * The including file defines INLINE and
 *
 *     copy(int8_t *to, const int8_t *from, intptr_t count, int32_t flip)     copies bytes, each xored with `flip`
 *     set(int8_t *to, intptr_t count, int32_t value)
 */
#pragma once

#include <stdint.h>

/* Positions of windows in an NHWC image. `fill` is the value of padding, as int8. `flip` is 0x80 to make uint8 int8, else 0.
 * `row` is the length of a row, padded with zeros. */
struct gathered_windows {
    int32_t height, width, channels;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t out_width, fill, flip, row;
};

INLINE int32_t at_most(int32_t x, int32_t most)
{
    return x > most ? most : x;
}

/* The taps of one row of a window: (iy, x0) is the first. */
static void window_row(int8_t *to, const int8_t *image, int32_t iy, int32_t x0, const struct gathered_windows *g)
{
    const int32_t channels = g->channels, run = g->kernel_width * channels;
    if ((uint32_t)iy >= (uint32_t)g->height) {
        set(to, run, g->fill);
        return;
    }
    const int8_t *row = image + (intptr_t)iy * g->width * channels;
    if (g->dilation_x == 1) {
        const int32_t over = x0 + g->kernel_width - g->width;
        const int32_t left = x0 < 0 ? at_most(-x0, g->kernel_width) * channels : 0;
        const int32_t right = over > 0 ? at_most(over, g->kernel_width - left / channels) * channels : 0;
        set(to, left, g->fill);
        copy(to + left, row + (intptr_t)x0 * channels + left, run - left - right, g->flip);
        set(to + run - right, right, g->fill);
        return;
    }
    for (int32_t kx = 0; kx < g->kernel_width; kx++) {
        const int32_t ix = x0 + kx * g->dilation_x;
        if ((uint32_t)ix >= (uint32_t)g->width) {
            set(to, channels, g->fill);
        } else {
            copy(to, row + (intptr_t)ix * channels, channels, g->flip);
        }
        to += channels;
    }
}

/* The windows of output pixels first, first + 1, ..., one in each row. */
INLINE void gather_windows(const void *x, int8_t *rows, int32_t first, int32_t count, const void *windows)
{
    const struct gathered_windows *g = windows;
    const int8_t *image = x;
    const int32_t run = g->kernel_width * g->channels, rest = g->row - g->kernel_height * run;
    const intptr_t image_row = (intptr_t)g->width * g->channels, down = g->dilation_y * image_row;
    /* First taps whose windows lie inside the image; none if taps of a row are not neighbours. */
    const int32_t rows_inside = g->height - (g->kernel_height - 1) * g->dilation_y;
    const int32_t columns_inside = g->dilation_x == 1 ? g->width - g->kernel_width + 1 : 0;
    int32_t oy = first / g->out_width, ox = first % g->out_width;
    for (; count != 0; count--) {
        const int32_t y0 = oy * g->stride_y - g->top, x0 = ox * g->stride_x - g->left;
        if (y0 >= 0 && y0 < rows_inside && x0 >= 0 && x0 < columns_inside) {
            const int8_t *from = image + y0 * image_row + (intptr_t)x0 * g->channels;
            int32_t ky = g->kernel_height;
            do {
                copy(rows, from, run, g->flip);
                rows += run;
                from += down;
            } while (--ky != 0);
        } else {
            for (int32_t ky = 0; ky < g->kernel_height; ky++) {
                window_row(rows, image, y0 + ky * g->dilation_y, x0, g);
                rows += run;
            }
        }
        for (int32_t k = 0; k < rest; k++) {
            *rows++ = 0;
        }
        if (++ox == g->out_width) {
            ox = 0;
            oy++;
        }
    }
}
