/* Shared by all families: depthwise convolution of 16-bit activations with 8-bit weights, one filter per channel, for one image.
 *
 * The including file defines
 *
 *   D16_GROUP   channels that are computed at a time
 *   D16_PIXEL   (x, row, column, w, of, y, p, kernel_height, kernel_width): computes all channels of a pixel. Element (ky, kx) of the
 *               window is at x[ky * row + kx * column]; it has all channels of the last group
 *   D16_COPY    (to, from, count), D16_ZERO(to, count): copies or clears whole groups
 *
 * and may define D16_PIXEL_IN_PLACE: if D16_IS_IN_PLACE, it replaces D16_PIXEL for channels that are not whole groups. It reads
 * nothing after the channels.
 *
 * Weights are in the order of the family's stages.backends.kernels.depthwise16.Lanes. Windows that are partly outside of the image are first copied
 * into scratch, with zeros as padding; so are all windows if the channels are not whole groups.
 *
 *      y = clamp((t * high + 2^31) >> 32), t = bias + sum within 32 bits
 */
#pragma once

#include <stddef.h>

#include "depthwise16_fields.h"

S16_INLINE void D16_PIXEL(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of, int16_t *y,
                          const struct fl_depthwise16 *p, int32_t kernel_height, int32_t kernel_width);
#ifdef D16_PIXEL_IN_PLACE
S16_INLINE void D16_PIXEL_IN_PLACE(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of,
                                   int16_t *y, const struct fl_depthwise16 *p, int32_t kernel_height, int32_t kernel_width);
#endif

/* One element of a window, all channels filled up to `pitch`. */
S16_INLINE void d16_copy(int16_t *to, const int16_t *from, int32_t channels, int32_t pitch)
{
    int32_t c = channels / D16_GROUP * D16_GROUP;
    D16_COPY(to, from, c);
    for (; c < channels; c++) {
        to[c] = from[c];
    }
    for (; c < pitch; c++) {
        to[c] = 0;
    }
}

static void d16_gather(int16_t *panel, const int16_t *x, int32_t row, int32_t column, int32_t pitch, const struct fl_depthwise16 *p)
{
    for (int32_t ky = 0; ky < p->kernel_height; ky++) {
        for (int32_t kx = 0; kx < p->kernel_width; kx++) {
            const int32_t iy = row + ky * p->dilation_y, ix = column + kx * p->dilation_x;
            const int inside = iy >= 0 && iy < p->height && ix >= 0 && ix < p->width;
            if (inside) {
                d16_copy(panel, x + (iy * p->width + ix) * p->channels, p->channels, pitch);
            } else {
                D16_ZERO(panel, pitch);
            }
            panel += pitch;
        }
    }
}

/* A separate function, so that its sums stay in registers. */
#define D16_FUNCTION(name, pixel, height, width)                                                                            \
    static __attribute__((noinline)) void name(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const void *of, \
                                               int16_t *y, const struct fl_depthwise16 *p)                                  \
    {                                                                                                                       \
        pixel(x, row, column, w, of, y, p, height, width);                                                                  \
    }
D16_FUNCTION(d16_three, D16_PIXEL, 3, 3)
D16_FUNCTION(d16_any, D16_PIXEL, p->kernel_height, p->kernel_width)
#ifdef D16_PIXEL_IN_PLACE
D16_FUNCTION(d16_three_in_place, D16_PIXEL_IN_PLACE, 3, 3)
D16_FUNCTION(d16_any_in_place, D16_PIXEL_IN_PLACE, p->kernel_height, p->kernel_width)
#endif

typedef void d16_pixel(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const void *of, int16_t *y,
                       const struct fl_depthwise16 *p);

/* The function that reads elements of the image; NULL if they are copied first. */
S16_INLINE d16_pixel *d16_in_place(const struct fl_depthwise16 *p, int three)
{
    if (p->channels % D16_GROUP == 0) {
        return three ? d16_three : d16_any;
    }
#ifdef D16_PIXEL_IN_PLACE
    if (D16_IS_IN_PLACE(p->channels)) {
        return three ? d16_three_in_place : d16_any_in_place;
    }
#endif
    return NULL;
}

S16_INLINE void d16_image(const int16_t *x, const int8_t *w, const void *channels, int16_t *y, int16_t *panel,
                          const struct fl_depthwise16 *p)
{
    const int32_t pitch = (p->channels + D16_GROUP - 1) / D16_GROUP * D16_GROUP;
    const int32_t high = (p->kernel_height - 1) * p->dilation_y, wide = (p->kernel_width - 1) * p->dilation_x;
    const int three = p->kernel_height == 3 && p->kernel_width == 3;
    d16_pixel *const in_place = d16_in_place(p, three), *const copied = three ? d16_three : d16_any;
    for (int32_t oy = 0; oy < p->out_height; oy++) {
        const int32_t iy = oy * p->stride_y - p->top;
        for (int32_t ox = 0; ox < p->out_width; ox++) {
            const int32_t ix = ox * p->stride_x - p->left;
            if (in_place != NULL && iy >= 0 && iy + high < p->height && ix >= 0 && ix + wide < p->width) {
                const int32_t row = p->width * p->channels * p->dilation_y, column = p->channels * p->dilation_x;
                in_place(x + (iy * p->width + ix) * p->channels, row, column, w, channels, y, p);
            } else {
                d16_gather(panel, x, iy, ix, pitch, p);
                copied(panel, p->kernel_width * pitch, pitch, w, channels, y, p);
            }
            y += p->channels;
        }
    }
}
