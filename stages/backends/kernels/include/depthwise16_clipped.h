/* Depthwise convolution of 16-bit activations with 8-bit weights, for one image that is read in place: each window is clipped to the
 * image, so that padding takes no time. For families that read the weights of one tap at a time.
 *
 * The including file defines
 *
 *   D16_GROUP   channels that are computed at a time, each with one byte of weights per tap
 *   D16_PIXEL   (x, row, column, w, of, y, p, t): computes all channels of a pixel. Tap (ky, kx) is at x[ky * row + kx * column]
 *
 *      y = clamp((t * high + 2^31) >> 32), t = bias + sum within 32 bits
 */
#pragma once

#include "depthwise16_fields.h"

/* The taps of a window inside the image. row_gap: bytes of weights to skip after a row; group_gap: after the rows of a group.
 * rest: channels after the last whole group. */
struct d16_taps {
    int32_t rows, columns, row_gap, group_gap, rest;
};

S16_INLINE void D16_PIXEL(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of, int16_t *y,
                          const struct fl_depthwise16 *p, struct d16_taps t);

/* Separate functions, so that their sums stay in registers. The first two are for whole windows and whole groups. */
static __attribute__((noinline)) void d16_three(const int16_t *x, int32_t row, int32_t column, const int8_t *w,
                                                const struct s16_channel *of, int16_t *y, const struct fl_depthwise16 *p)
{
    D16_PIXEL(x, row, column, w, of, y, p, (struct d16_taps){3, 3, 0, 0, 0});
}

static __attribute__((noinline)) void d16_whole(const int16_t *x, int32_t row, int32_t column, const int8_t *w,
                                                const struct s16_channel *of, int16_t *y, const struct fl_depthwise16 *p)
{
    D16_PIXEL(x, row, column, w, of, y, p, (struct d16_taps){p->kernel_height, p->kernel_width, 0, 0, 0});
}

static __attribute__((noinline)) void d16_clipped(const int16_t *x, int32_t row, int32_t column, const int8_t *w,
                                                  const struct s16_channel *of, int16_t *y, const struct fl_depthwise16 *p,
                                                  const struct d16_taps *t)
{
    D16_PIXEL(x, row, column, w, of, y, p, *t);
}

/* The first tap at or after `from`, and the taps before `from`, both at most `taps`. */
S16_INLINE int32_t d16_taps_before(int32_t from, int32_t dilation, int32_t taps)
{
    const int32_t before = from <= 0 ? 0 : dilation == 1 ? from : (from + dilation - 1) / dilation;
    return before < taps ? before : taps;
}

S16_INLINE void d16_image(const int16_t *x, const int8_t *w, const void *channels, int16_t *y, const struct fl_depthwise16 *p)
{
    const int32_t row = p->width * p->channels * p->dilation_y, column = p->channels * p->dilation_x;
    const int32_t high = (p->kernel_height - 1) * p->dilation_y, wide = (p->kernel_width - 1) * p->dilation_x;
    const int three = p->kernel_height == 3 && p->kernel_width == 3;
    const int32_t rest = p->channels % D16_GROUP;
    for (int32_t oy = 0; oy < p->out_height; oy++) {
        const int32_t iy = oy * p->stride_y - p->top;
        for (int32_t ox = 0; ox < p->out_width; ox++) {
            const int32_t ix = ox * p->stride_x - p->left;
            const int16_t *const first = x + (iy * p->width + ix) * p->channels;
            if (rest == 0 && iy >= 0 && iy + high < p->height && ix >= 0 && ix + wide < p->width) {
                (three ? d16_three : d16_whole)(first, row, column, w, channels, y, p);
            } else {
                const int32_t ky = d16_taps_before(-iy, p->dilation_y, p->kernel_height);
                const int32_t kx = d16_taps_before(-ix, p->dilation_x, p->kernel_width);
                const int32_t rows = d16_taps_before(p->height - iy, p->dilation_y, p->kernel_height) - ky;
                const int32_t columns = d16_taps_before(p->width - ix, p->dilation_x, p->kernel_width) - kx;
                const int32_t met = columns > 0 ? rows : 0, row_gap = (p->kernel_width - columns) * D16_GROUP;
                const struct d16_taps t = {met, columns, row_gap, (p->kernel_height - met) * p->kernel_width * D16_GROUP,
                                           rest};
                const int8_t *const weights = w + (ky * p->kernel_width + kx) * D16_GROUP;
                d16_clipped(first + ky * row + kx * column, row, column, weights, channels, y, p, &t);
            }
            y += p->channels;
        }
    }
}
