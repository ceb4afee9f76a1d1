/* Gathers windows into rows, from which convolution is a product of matrices. */
#include <arm_neon.h>
#include <stdbool.h>
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
    const int8_t *const whole = x + (count & ~15), *const end = x + count;
    int32x4_t total = vdupq_n_s32(0);
    for (; x != whole; x += 16) {
#ifdef __ARM_FEATURE_DOTPROD
        total = vdotq_s32(total, vld1q_s8(x), vdupq_n_s8(1));
#else
        total = vpadalq_s16(total, vpaddlq_s8(vld1q_s8(x)));
#endif
    }
    int32_t rest = vaddvq_s32(total);
    for (; x != end; x++) {
        rest += *x;
    }
    return rest;
}

/* Copies `count` runs of `run` bytes that are `row` bytes apart, one after another. Up to 15 bytes behind each run are read, and
 * written behind the last one.
 */
static inline void copy_runs(uint8_t *to, const uint8_t *from, int32_t count, int32_t run, ptrdiff_t row, uint8x16_t flip, bool flips)
{
    if (run <= 16) {
        do {
            const uint8x16_t piece = vld1q_u8(from);
            vst1q_u8(to, flips ? veorq_u8(piece, flip) : piece);
            to += run;
            from += row;
        } while (--count > 0);
        return;
    }
    do {
        const uint8_t *x = from, *const end = x + run;
        uint8_t *y = to;
        while (end - x > 48) {
            if (flips) {
                const uint8x16_t p0 = vld1q_u8(x), p1 = vld1q_u8(x + 16), p2 = vld1q_u8(x + 32), p3 = vld1q_u8(x + 48);
                vst1q_u8(y, veorq_u8(p0, flip));
                vst1q_u8(y + 16, veorq_u8(p1, flip));
                vst1q_u8(y + 32, veorq_u8(p2, flip));
                vst1q_u8(y + 48, veorq_u8(p3, flip));
            } else {
                vst1q_u8_x4(y, vld1q_u8_x4(x));
            }
            x += 64;
            y += 64;
        }
        while (x < end) {
            const uint8x16_t piece = vld1q_u8(x);
            vst1q_u8(y, flips ? veorq_u8(piece, flip) : piece);
            x += 16;
            y += 16;
        }
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

/* Whether the windows of a line follow each other in the image as they do in the rows. */
static inline bool is_line(const struct neon_windows *g)
{
    return g->kernel_height == 1 && g->kernel_width == g->stride_x && g->row == g->kernel_width * g->channels;
}

/* `pixels` windows inside of the image, from the first tap of the first one. `flips`: whether flip is not 0. Up to 15 bytes behind the
 * last row are written. The fields are copied, because the compiler cannot know that stores of bytes keep them.
 */
static inline __attribute__((always_inline)) void inside(uint8_t *to, const uint8_t *from, int32_t pixels,
                                                         const struct neon_windows *windows, bool flips)
{
    const struct neon_windows g = *windows;
    const uint8x16_t flip = vdupq_n_u8((uint8_t)g.flip);
    const int32_t run = g.kernel_width * g.channels, taken = g.kernel_height * run;
    const ptrdiff_t image_row = (ptrdiff_t)g.width * g.channels, step = (ptrdiff_t)g.stride_x * g.channels;
    if (is_line(windows) && pixels > 0) {
        copy_runs(to, from, 1, pixels * run, image_row, flip, flips);
        return;
    }
    for (; pixels > 0; pixels--) {
        copy_runs(to, from, g.kernel_height, run, image_row, flip, flips);
        if (g.row != taken) {
            vst1q_u8(to + taken, vdupq_n_u8(0));
        }
        to += g.row;
        from += step;
    }
}

/* The same for windows that may lie outside in part, from first tap (y0, x0); writes nothing behind the last row. */
static void anywhere(uint8_t *to, const uint8_t *image, int32_t pixels, int32_t y0, int32_t x0, const struct neon_windows *g)
{
    const int32_t taken = g->kernel_height * g->kernel_width * g->channels;
    for (; pixels > 0; pixels--) {
        window(to, image, y0, x0, g, vdupq_n_u8((uint8_t)g->flip));
        set(to + taken, g->row - taken, 0);
        to += g->row;
        x0 += g->stride_x;
    }
}

void neon_windows(const void *x, int8_t *rows, int32_t *offsets, int32_t first, int32_t count, const void *windows)
{
    const struct neon_windows *g = windows;
    const uint8_t *image = x;
    const int32_t run = g->kernel_width * g->channels, taken = g->kernel_height * run, spare = is_line(g) ? 15 : -run & 15;
    const ptrdiff_t image_row = (ptrdiff_t)g->width * g->channels, step = (ptrdiff_t)g->stride_x * g->channels;
    /* The range of pixels in a line of the output whose windows are inside of the image, the last byte of the image from which a window
     * can be copied with what is read behind it, and the last byte of the rows to which it can.
     */
    const bool dense = g->dilation_y == 1 && g->dilation_x == 1 && g->width >= g->kernel_width;
    const int32_t inside_from = (g->left + g->stride_x - 1) / g->stride_x;
    const int32_t inside_to = dense ? at_most((g->width - g->kernel_width + g->left) / g->stride_x + 1, g->out_width) : 0;
    const ptrdiff_t last_start = g->height * image_row - ((g->kernel_height - 1) * image_row + run + spare);
    uint8_t *to = (uint8_t *)rows;
    const uint8_t *const last_row = to + (ptrdiff_t)count * g->row - taken - (g->row != taken ? 16 : spare);
    int32_t oy = first / g->out_width, ox = first % g->out_width;
    for (int32_t left = count; left > 0; oy++, ox = 0) {
        const int32_t end = at_most(ox + left, g->out_width), y0 = oy * g->stride_y - g->top;
        const ptrdiff_t line = y0 * image_row - (ptrdiff_t)g->left * g->channels;
        int32_t low = inside_from > ox ? inside_from : ox, high = at_most(inside_to, end);
        if (y0 < 0 || y0 + g->kernel_height > g->height) {
            high = low;
        }
        while (high > low && (line + (high - 1) * step > last_start || to + (ptrdiff_t)(high - 1 - ox) * g->row > last_row)) {
            high--;
        }
        if (high <= low) {
            low = high = end;
        }
        anywhere(to, image, low - ox, y0, ox * g->stride_x - g->left, g);
        to += (ptrdiff_t)(low - ox) * g->row;
        if (g->flip != 0) {
            inside(to, image + line + low * step, high - low, g, true);
        } else {
            inside(to, image + line + low * step, high - low, g, false);
        }
        to += (ptrdiff_t)(high - low) * g->row;
        anywhere(to, image, end - high, y0, high * g->stride_x - g->left, g);
        to += (ptrdiff_t)(end - high) * g->row;
        left -= end - ox;
    }
    const int32_t zero_point = g->weight_zero_point, row = g->row;
    for (int32_t i = 0; zero_point != 0 && i < count; i++) {
        offsets[i] = -zero_point * sum(rows, row);
        rows += row;
    }
}
