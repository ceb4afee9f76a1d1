/* Gathers the windows of neighbouring output pixels into one strip, from which convolution is a product of matrices.
 *
 *   strip   [column][kernel_y][channels]     a window is kernel_x columns: one row of the matrix. The next one begins stride_x columns
 *                                            later
 *
 * So a pixel is copied once for all windows of the strip that contain it. Pixels with few channels are copied eight bytes at a time:
 * each vector is scattered to the columns of its bytes.
 */
#include "bytes.h"
#include "gemm.h"
#include "runs.h"

enum { LANES = 8 };

/* `count` columns, `step` bytes apart, of `channels` bytes of `fill`. */
MVE_INLINE void fill_columns(uint8_t *to, int32_t count, int32_t channels, int32_t step, uint8x16_t fill)
{
    for (; count > 0; count--) {
        (void)mve_set(to, channels, fill);
        to += step;
    }
}

/* Groups of eight pixels of up to eight channels: `channels` vectors. */
MVE_INLINE void scatter_eights(uint8_t *to, const uint8_t *from, int32_t groups, int32_t channels, int32_t step, int flips,
                               uint16x8_t flip)
{
    const uint16x8_t reciprocal = vdupq_n_u16((uint16_t)((0xffff + channels) / channels));
    for (int32_t v = 0; v < channels; v++) {
        const uint16x8_t byte = vidupq_n_u16((uint32_t)(LANES * v), 1);
        const uint16x8_t pixel = channels == 1 ? byte : vmulhq_u16(byte, reciprocal);
        const uint16x8_t offsets = vmlaq_n_u16(byte, pixel, (uint16_t)(step - channels));
        const uint8_t *at = from + LANES * v;
        uint8_t *put = to;
        for (int32_t i = 0; i < groups; i++) {
            const uint16x8_t bytes = vldrbq_u16(at);
            vstrbq_scatter_offset_u16(put, offsets, flips ? veorq_u16(bytes, flip) : bytes);
            at += LANES * channels;
            put += LANES * step;
        }
    }
}

/* `count` pixels to columns `step` bytes apart. */
MVE_INLINE void copy_columns(uint8_t *to, const uint8_t *from, int32_t count, int32_t step, const struct mve_windows *g, int flips,
                             uint8x16_t flip)
{
    if (count <= 0) {
        return;
    }
    if (g->pixel == g->channels && step == g->channels) {
        (void)(flips ? mve_copy_flipped(to, from, count * step, flip) : mve_copy(to, from, count * step));
        return;
    }
    if (g->pixel == g->channels && g->channels <= LANES) {
        const int32_t groups = count / LANES;
        scatter_eights(to, from, groups, g->channels, step, flips, vdupq_n_u16((uint16_t)g->flip));
        to += groups * LANES * step;
        from += groups * LANES * g->pixel;
        count -= groups * LANES;
        if (count == 0) {
            return;
        }
    }
    copy_runs(to, from, count, g->channels, step, g->pixel, flips, flip);
}

MVE_INLINE void strip(const uint8_t *image, uint8_t *to, int32_t first, int32_t count, const struct mve_windows *g, int flips)
{
    const uint8x16_t fill = vdupq_n_u8((uint8_t)g->fill), flip = vdupq_n_u8((uint8_t)g->flip);
    const int32_t columns = (count - 1) * g->stride_x + g->kernel_x, step = g->kernel_y * g->channels;
    const int32_t x = first % g->out_width * g->stride_x - g->left;
    const int32_t before = x >= 0 ? 0 : -x < columns ? -x : columns;
    const int32_t inside = g->width - x < columns ? g->width - x : columns;
    const int32_t end = inside > before ? inside : before;
    int32_t y = first / g->out_width * g->stride_y - g->top;
    for (int32_t ky = 0; ky < g->kernel_y; ky++) {
        if (y < 0 || y >= g->height) {
            fill_columns(to, columns, g->channels, step, fill);
        } else {
            fill_columns(to, before, g->channels, step, fill);
            copy_columns(to + before * step, image + y * g->line + (x + before) * g->pixel, end - before, step, g, flips, flip);
            fill_columns(to + end * step, columns - end, g->channels, step, fill);
        }
        to += g->channels;
        y += g->dilation_y;
    }
}

/* What the windows of a strip add to their sums for the weights' zero point. */
static void sum_windows(const int8_t *windows, int32_t *offsets, int32_t count, const struct mve_windows *g)
{
    for (int32_t i = 0; g->weight_zero_point != 0 && i < count; i++) {
        offsets[i] = -g->weight_zero_point * mve_sum(windows + i * g->row, g->depth);
    }
}

void mve_strip_s8(const void *x, int8_t *to, int32_t *offsets, int32_t first, int32_t count, const int32_t *windows)
{
    strip(x, (uint8_t *)to, first, count, (const struct mve_windows *)windows, 0);
    sum_windows(to, offsets, count, (const struct mve_windows *)windows);
}

void mve_strip_u8(const void *x, int8_t *to, int32_t *offsets, int32_t first, int32_t count, const int32_t *windows)
{
    strip(x, (uint8_t *)to, first, count, (const struct mve_windows *)windows, 1);
    sum_windows(to, offsets, count, (const struct mve_windows *)windows);
}
