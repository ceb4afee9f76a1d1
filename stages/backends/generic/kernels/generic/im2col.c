/* Gathers the windows of consecutive output pixels into rows, so that convolution becomes a matrix product.
 *
 * Pixel `first + p` (counted along the rows of the output) becomes row p of `patch`. Taps outside the image hold
 * `fill`, the input's zero point. uint8 images become int8 by flipping the top bit: flip is 0x80 for them and 0 for
 * int8.
 */
#include "im2col.h"

#include <stddef.h>
#include <string.h>

static void copy(uint8_t *to, const uint8_t *from, int32_t count, int32_t flip)
{
    if (flip == 0) {
        memcpy(to, from, (size_t)count);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        to[i] = (uint8_t)(from[i] ^ flip);
    }
}

/* x is (height, width, channels) with `pixel` bytes from one pixel to the next; a row of patch is (ky, kx, channel). */
void fl_im2col_nhwc(const void *x, int8_t *patch, int32_t first, int32_t count, const void *parameters)
{
    const struct fl_im2col *g = parameters;
    uint8_t *to = (uint8_t *)patch;
    const int whole_rows = g->dilation_x == 1 && g->pixel == g->channels; /* a window's row is one run of bytes */
    for (int32_t p = first; p < first + count; p++) {
        const int32_t y0 = p / g->out_width * g->stride_y - g->top;
        const int32_t x0 = p % g->out_width * g->stride_x - g->left;
        const int inside = whole_rows && x0 >= 0 && x0 + g->kernel_width <= g->width;
        for (int32_t ky = 0; ky < g->kernel_height; ky++) {
            const int32_t iy = y0 + ky * g->dilation_y;
            if (iy < 0 || iy >= g->height) {
                memset(to, g->fill, (size_t)(g->kernel_width * g->channels));
                to += g->kernel_width * g->channels;
                continue;
            }
            const uint8_t *row = (const uint8_t *)x + (ptrdiff_t)iy * g->width * g->pixel;
            if (inside) {
                copy(to, row + (ptrdiff_t)x0 * g->pixel, g->kernel_width * g->channels, g->flip);
                to += g->kernel_width * g->channels;
                continue;
            }
            for (int32_t kx = 0; kx < g->kernel_width; kx++) {
                const int32_t ix = x0 + kx * g->dilation_x;
                if (ix < 0 || ix >= g->width) {
                    memset(to, g->fill, (size_t)g->channels);
                } else {
                    copy(to, row + (ptrdiff_t)ix * g->pixel, g->channels, g->flip);
                }
                to += g->channels;
            }
        }
    }
}

/* x is (channels, height, width); a row of patch is (channel, ky, kx). */
void fl_im2col_nchw(const void *x, int8_t *patch, int32_t first, int32_t count, const void *parameters)
{
    const struct fl_im2col *g = parameters;
    uint8_t *to = (uint8_t *)patch;
    for (int32_t p = first; p < first + count; p++) {
        const int32_t y0 = p / g->out_width * g->stride_y - g->top;
        const int32_t x0 = p % g->out_width * g->stride_x - g->left;
        const uint8_t *plane = x;
        for (int32_t c = 0; c < g->channels; c++) {
            for (int32_t ky = 0; ky < g->kernel_height; ky++) {
                const int32_t iy = y0 + ky * g->dilation_y;
                const int row_inside = iy >= 0 && iy < g->height;
                for (int32_t kx = 0; kx < g->kernel_width; kx++) {
                    const int32_t ix = x0 + kx * g->dilation_x;
                    const int inside = row_inside && ix >= 0 && ix < g->width;
                    *to++ = (uint8_t)(inside ? plane[iy * g->width + ix] ^ g->flip : g->fill);
                }
            }
            plane += (ptrdiff_t)g->height * g->width;
        }
    }
}
