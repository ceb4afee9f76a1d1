/* Gathers windows into rows, from which convolution is a product of matrices. */
#include <arm_neon.h>
#include <stddef.h>

#include "matrix.h"

/* `count` bytes, each xored with `flip`. Pieces overlap where the count is not a multiple of their size; nothing beyond the bytes
 * is read or written. */
static inline void copy(uint8_t *to, const uint8_t *from, int32_t count, uint8x16_t flip)
{
    if (count >= 16) {
        const uint8x16_t last = veorq_u8(vld1q_u8(from + count - 16), flip);
        uint8_t *const end = to + count - 16;
        do {
            vst1q_u8(to, veorq_u8(vld1q_u8(from), flip));
            to += 16;
            from += 16;
        } while (to < end);
        vst1q_u8(end, last);
    } else if (count >= 8) {
        const uint8x8_t last = veor_u8(vld1_u8(from + count - 8), vget_low_u8(flip));
        vst1_u8(to, veor_u8(vld1_u8(from), vget_low_u8(flip)));
        vst1_u8(to + count - 8, last);
    } else {
        const uint8_t bits = vgetq_lane_u8(flip, 0);
        for (int32_t i = 0; i < count; i++) {
            to[i] = from[i] ^ bits;
        }
    }
}

static inline int32_t at_most(int32_t x, int32_t most)
{
    return x > most ? most : x;
}

static inline void set(uint8_t *to, int32_t count, uint8_t value)
{
    if (count >= 16) {
        uint8_t *const end = to + count - 16;
        for (; to < end; to += 16) {
            vst1q_u8(to, vdupq_n_u8(value));
        }
        vst1q_u8(end, vdupq_n_u8(value));
    } else {
        for (int32_t i = 0; i < count; i++) {
            to[i] = value;
        }
    }
}

static inline int32_t sum(const int8_t *x, int32_t count)
{
    int32x4_t total = vdupq_n_s32(0);
    int32_t i = 0;
    for (; i + 16 <= count; i += 16) {
        total = vpadalq_s16(total, vpaddlq_s8(vld1q_s8(x + i)));
    }
    int32_t rest = vaddvq_s32(total);
    for (; i < count; i++) {
        rest += x[i];
    }
    return rest;
}

/* Copies `count` runs of `run` bytes that are `row` bytes apart, one after another, in pieces of 16. Up to 15 bytes after each run are
 * read, and written after the last one.
 */
static inline void copy_runs(uint8_t *to, const uint8_t *from, int32_t count, int32_t run, ptrdiff_t row, uint8x16_t flip)
{
    do {
        int32_t i = 0;
        do {
            vst1q_u8(to + i, veorq_u8(vld1q_u8(from + i), flip));
            i += 16;
        } while (i < run);
        to += run;
        from += row;
    } while (--count > 0);
}

/* The taps of one row of a window: (iy, x0) is the first. */
static inline uint8_t *window_row(uint8_t *to, const uint8_t *image, int32_t iy, int32_t x0, const struct neon_windows *g,
                                  uint8x16_t flip)
{
    const int32_t channels = g->channels;
    const int32_t run = g->kernel_width * channels;
    if (iy < 0 || iy >= g->height) {
        set(to, run, (uint8_t)g->fill);
        return to + run;
    }
    const uint8_t *row = image + (ptrdiff_t)iy * g->width * channels;
    if (g->dilation_x == 1) {
        const int32_t over = x0 + g->kernel_width - g->width;
        const int32_t left = x0 < 0 ? at_most(-x0, g->kernel_width) * channels : 0;
        const int32_t right = over > 0 ? at_most(over, g->kernel_width) * channels : 0;
        set(to, left, (uint8_t)g->fill);
        copy(to + left, row + (ptrdiff_t)x0 * channels + left, run - left - right, flip);
        set(to + run - right, right, (uint8_t)g->fill);
        return to + run;
    }
    for (int32_t kx = 0; kx < g->kernel_width; kx++) {
        const int32_t ix = x0 + kx * g->dilation_x;
        if (ix < 0 || ix >= g->width) {
            set(to, channels, (uint8_t)g->fill);
        } else {
            copy(to, row + (ptrdiff_t)ix * channels, channels, flip);
        }
        to += channels;
    }
    return to;
}

/* The window whose first tap is (y0, x0), row by row. */
static void window(uint8_t *to, const uint8_t *image, int32_t y0, int32_t x0, const struct neon_windows *g, uint8x16_t flip)
{
    for (int32_t ky = 0; ky < g->kernel_height; ky++) {
        to = window_row(to, image, y0 + ky * g->dilation_y, x0, g, flip);
    }
}

void neon_windows(const void *x, int8_t *rows, int32_t *offsets, int32_t first, int32_t count, const void *windows)
{
    const struct neon_windows *g = windows;
    const uint8_t *image = x;
    const uint8x16_t flip = vdupq_n_u8((uint8_t)g->flip);
    const int32_t run = g->kernel_width * g->channels, taken = g->kernel_height * run, spare = -run & 15;
    const ptrdiff_t image_row = (ptrdiff_t)g->width * g->channels;
    /* The range of first taps whose windows are inside the image, and the last byte of the image where such a window may start. */
    const uint32_t ys = (uint32_t)(g->height - g->kernel_height + 1), xs = (uint32_t)(g->width - g->kernel_width + 1);
    const ptrdiff_t last_start = g->height * image_row - ((g->kernel_height - 1) * image_row + run + spare);
    const int dense = g->dilation_y == 1 && g->dilation_x == 1 && g->height >= g->kernel_height && g->width >= g->kernel_width;
    int32_t oy = first / g->out_width;
    int32_t ox = first % g->out_width;
    const uint8_t *const end = (uint8_t *)rows + (ptrdiff_t)count * g->row;
    for (int32_t i = 0; i < count; i++) {
        uint8_t *to = (uint8_t *)rows;
        const int32_t y0 = oy * g->stride_y - g->top, x0 = ox * g->stride_x - g->left;
        const ptrdiff_t start = y0 * image_row + (ptrdiff_t)x0 * g->channels;
        if (dense && (uint32_t)y0 < ys && (uint32_t)x0 < xs && start <= last_start && to + taken + spare <= end) {
            copy_runs(to, image + start, g->kernel_height, run, image_row, flip);
        } else {
            window(to, image, y0, x0, g, flip);
        }
        for (int32_t k = taken; k < g->row; k++) {
            to[k] = 0;
        }
        if (g->weight_zero_point != 0) {
            offsets[i] = -g->weight_zero_point * sum(rows, g->row);
        }
        rows += g->row;
        if (++ox == g->out_width) {
            ox = 0;
            oy++;
        }
    }
}
