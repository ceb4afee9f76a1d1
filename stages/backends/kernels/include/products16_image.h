/* Shared by all families: convolution and matrix product of 16-bit activations with 8-bit weights, for one image.
 *
 * The including file defines
 *
 *   P16_ROWS, P16_CHANNELS  output pixels and channels that are computed at a time
 *   P16_PAIR      channels whose weights alternate
 *   p16_sum       type of the sums
 *   p16_copy      (to, apart, from, count): copies a run into a row of the panel
 *   p16_products  (rows, panel, pitch, w, depth, count, sums): sums[channel * rows + row] = sum over `count` elements, for P16_ROWS
 *                 rows or one. Rows are `pitch` apart; with P16_PAIRED, words of two elements alternate between the rows
 *
 * and may define
 *
 *   S16_HIGH         as in scale16.h
 *   P16_WRITE_SHORT  for mode SHORT, in place of p16_write
 *   P16_ALL_SHORT    for mode SHORT: (panel, w, channels, y, out_channels, p): computes the results of P16_ROWS rows and returns the
 *                    number of channels that it computed
 *
 * Windows are gathered into a panel: element k of a row is at (k >> 1) * apart + (k & 1). Runs of consecutive elements of the image
 * begin at multiples of `pitch` elements. Gaps between runs, and elements after the last run up to `depth`, have weights of 0.
 *
 * Sums of `chunk` elements fit 32 bits. With the total t within 32 bits (mode LONG: saturated, which the clamp hides)
 *
 *      y = clamp((t * scale + 2^63) >> 64), t = bias + sum, scale = high * 2^32 + low of 64 bits, low signed; without it in mode SHORT
 */
#pragma once

#include "fixed_point.h"
#include "scale16.h"

enum { P16_SHORT, P16_FINE, P16_LONG };

struct fl_products16 {
    int32_t height, width, channels;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left, out_width;
    int32_t pixels, out_channels, run, pitch, depth, chunk, direct, mode, low, high;
};

/* For one block of channels: sums of a chunk, and of all chunks if there are several. */
struct p16_scratch {
    p16_sum sums[P16_ROWS * P16_CHANNELS];
    int64_t totals[P16_ROWS * P16_CHANNELS];
};

/* Element k of a row. */
S16_INLINE int16_t *p16_at(int16_t *row, int32_t apart, int32_t k)
{
    return apart == 2 ? row + k : row + (k >> 1) * apart + (k & 1);
}

S16_INLINE void p16_zero(int16_t *to, int32_t apart, int32_t from, int32_t end)
{
    if ((from & 1) && from < end) {
        to[(from >> 1) * apart + 1] = 0;
        from++;
    }
    int16_t *at = to + (from >> 1) * apart;
    for (; end - from >= 2; from += 2) {
        at[0] = 0;
        at[1] = 0;
        at += apart;
    }
    if (from < end) {
        at[0] = 0;
    }
}

/* The elements of a run from `from` to `to` are inside the image; all others are 0. */
S16_INLINE void p16_part(int16_t *panel, int32_t apart, const int16_t *x, int32_t run, int32_t from, int32_t to)
{
    p16_zero(panel, apart, 0, from);
    if (P16_PAIRED && (from & 1)) {
        for (int32_t k = from; k < to; k++) {
            *p16_at(panel, apart, k) = x[k];
        }
    } else if (to > from) {
        p16_copy(p16_at(panel, apart, from), apart, x + from, to - from);
    }
    p16_zero(panel, apart, to, run);
}

/* Elements after the last run do not change. */
S16_INLINE void p16_window(int16_t *panel, int32_t apart, const int16_t *x, int32_t row, int32_t column, const struct fl_products16 *p)
{
    const int32_t taps = p->dilation_x == 1 ? p->kernel_width : 1; /* of a run */
    int32_t at = 0;
    for (int32_t ky = 0; ky < p->kernel_height; ky++) {
        const int32_t iy = row + ky * p->dilation_y;
        const int inside = iy >= 0 && iy < p->height;
        for (int32_t kx = 0; kx < p->kernel_width; kx += taps) {
            const int32_t ix = column + kx * p->dilation_x;
            int16_t *const to = p16_at(panel, apart, at);
            if (inside && ix >= 0 && ix + taps <= p->width) {
                p16_copy(to, apart, x + (iy * p->width + ix) * p->channels, p->run);
            } else {
                const int32_t from = s16_clamp(-ix, 0, taps), end = inside ? s16_clamp(p->width - ix, from, taps) : from;
                p16_part(to, apart, x + (iy * p->width + ix) * p->channels, p->run, from * p->channels, end * p->channels);
            }
            at += p->pitch;
        }
    }
}

/* Separate functions, because they have more registers than their callers. */
static __attribute__((noinline)) void p16_window_alone(int16_t *panel, const int16_t *x, int32_t row, int32_t column,
                                                       const struct fl_products16 *p)
{
    p16_window(panel, 2, x, row, column, p);
}

static __attribute__((noinline)) void p16_window_beside(int16_t *panel, const int16_t *x, int32_t row, int32_t column,
                                                        const struct fl_products16 *p)
{
    p16_window(panel, 2 * P16_ROWS, x, row, column, p);
}

/* Whether windows are the pixels of the image, one after the other. */
S16_INLINE int p16_is_plain(const struct fl_products16 *p)
{
    return p->kernel_height * p->kernel_width * p->stride_y * p->stride_x == 1 && p->pixels == p->height * p->width;
}

/* The rows of output pixels first, first + 1, ... Zeros after a row stay if the next rows have the same positions. */
S16_INLINE void p16_gather(int16_t *panel, const int16_t *x, int32_t first, int32_t rows, const struct fl_products16 *p)
{
    const int32_t paired = P16_PAIRED && rows > 1;
    const int32_t apart = paired ? 2 * P16_ROWS : 2, next = paired ? 2 : p->depth;
    if (first == 0 || (P16_PAIRED && !paired)) {
        const int32_t runs = p->kernel_height * (p->dilation_x == 1 ? 1 : p->kernel_width);
        for (int32_t r = 0; r < rows; r++) {
            p16_zero(panel + r * next, apart, runs * p->pitch, p->depth);
        }
    }
    if (p16_is_plain(p)) {
        const int16_t *from = x + first * p->run;
        for (int32_t r = 0; r < rows; r++) {
            p16_copy(panel, apart, from, p->run);
            panel += next;
            from += p->run;
        }
        return;
    }
    int32_t oy = first / p->out_width, ox = first % p->out_width;
    for (int32_t r = 0; r < rows; r++) {
        const int32_t row = oy * p->stride_y - p->top, column = ox * p->stride_x - p->left;
        if (paired) {
            p16_window_beside(panel, x, row, column, p);
        } else {
            p16_window_alone(panel, x, row, column, p);
        }
        panel += next;
        if (++ox == p->out_width) {
            ox = 0;
            oy++;
        }
    }
}

S16_INLINE int32_t p16_scaled(int32_t t, int32_t high, int32_t low, int mode)
{
    if (mode == P16_SHORT) {
        return S16_HIGH(t, high);
    }
    return (int32_t)(((int64_t)t * high + (((int64_t)t * low) >> 32) + ((int64_t)1 << 31)) >> 32);
}

/* The sums of a block of `channels` channels as results. */
S16_INLINE void p16_write(int16_t *y, const struct p16_scratch *s, const struct s16_channel *of, int32_t rows, int32_t channels,
                          int mode, const struct fl_products16 *p)
{
#ifdef P16_WRITE_SHORT
    if (mode == P16_SHORT) {
        P16_WRITE_SHORT(y, s->sums, of, rows, channels, p->out_channels, p->low, p->high);
        return;
    }
#endif
    for (int32_t c = 0; c < channels; c++) {
        const int64_t bias = of[c].bias;
        const int32_t high = of[c].high, low = of[c].low;
#pragma GCC unroll 4
        for (int32_t r = 0; r < rows; r++) {
            const int64_t sum = mode == P16_LONG ? s->totals[c * rows + r] : s->sums[c * rows + r];
            const int32_t t = mode == P16_LONG ? fl_saturate(sum + bias) : (int32_t)((uint32_t)sum + (uint32_t)bias);
            y[r * p->out_channels + c] = (int16_t)s16_clamp(p16_scaled(t, high, low, mode), p->low, p->high);
        }
    }
}

/* All channels of `rows` pixels. */
S16_INLINE void p16_row(const int16_t *panel, const int8_t *w, const struct s16_channel *of, int16_t *y, struct p16_scratch *s,
                        int32_t rows, int mode, const struct fl_products16 *p)
{
    const int32_t apart = P16_PAIRED ? rows : 1;
    int32_t c = 0;
#ifdef P16_ALL_SHORT
    if (mode == P16_SHORT && rows > 1) {
        c = P16_ALL_SHORT(panel, w, of, y, p->out_channels, p);
    }
#endif
    for (; c < p->out_channels; c += P16_CHANNELS) {
        const int8_t *const block = w + c * p->depth;
        const int32_t channels = p->out_channels - c < P16_CHANNELS ? p->out_channels - c : P16_CHANNELS;
        if (mode != P16_LONG) {
            p16_products(rows, panel, p->depth, block, p->depth, p->depth, s->sums);
        } else {
            for (int32_t k = 0; k < p->depth; k += p->chunk) {
                const int32_t count = p->depth - k < p->chunk ? p->depth - k : p->chunk;
                p16_products(rows, panel + k * apart, p->depth, block + k * P16_PAIR, p->depth, count, s->sums);
                for (int32_t n = 0; n < rows * P16_CHANNELS; n++) {
                    s->totals[n] = (k > 0 ? s->totals[n] : 0) + s->sums[n];
                }
            }
        }
        p16_write(y + c, s, of + c, rows, channels, mode, p);
    }
}

#define P16_ROW(name, rows, mode)                                                                                          \
    static void name(const int16_t *panel, const int8_t *w, const struct s16_channel *of, int16_t *y, struct p16_scratch *s, \
                     const struct fl_products16 *p)                                                                        \
    {                                                                                                                      \
        p16_row(panel, w, of, y, s, rows, mode, p);                                                                        \
    }
typedef void p16_function(const int16_t *panel, const int8_t *w, const struct s16_channel *of, int16_t *y, struct p16_scratch *s,
                          const struct fl_products16 *p);
P16_ROW(p16_many_short, P16_ROWS, P16_SHORT)
P16_ROW(p16_many_fine, P16_ROWS, P16_FINE)
P16_ROW(p16_many_long, P16_ROWS, P16_LONG)
P16_ROW(p16_one_short, 1, P16_SHORT)
P16_ROW(p16_one_fine, 1, P16_FINE)
P16_ROW(p16_one_long, 1, P16_LONG)

/* One image. The panel is in scratch, after the sums. Up to `direct` rows at a time are read in place. */
S16_INLINE void p16_image(const int16_t *x, const int8_t *w, const void *channels, int16_t *y, int32_t *scratch,
                          const struct fl_products16 *p)
{
    static p16_function *const many[] = {p16_many_short, p16_many_fine, p16_many_long};
    static p16_function *const one[] = {p16_one_short, p16_one_fine, p16_one_long};
    struct p16_scratch *const s = (struct p16_scratch *)scratch;
    int16_t *const panel = (int16_t *)(s + 1);
    for (int32_t pixel = 0, rows = P16_ROWS; pixel < p->pixels; pixel += rows) {
        rows = p->pixels - pixel < P16_ROWS ? 1 : P16_ROWS;
        const int16_t *from = x + pixel * p->depth;
        if (rows > p->direct) {
            p16_gather(panel, x, pixel, rows, p);
            from = panel;
        }
        (rows > 1 ? many : one)[p->mode](from, w, channels, y + pixel * p->out_channels, s, p);
    }
}
