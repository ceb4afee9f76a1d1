/* Copies the windows of a depthwise convolution, channel by channel, into strips for taps.S.
 *
 * A channel has a strip of columns, and a column has kernel_y lines:
 *
 *   byte of a strip   column * kernel_y + line         a window is kernel_x columns: consecutive bytes
 *
 * A row of the image is written into the same line of all columns. The next row of outputs reuses the lines of the rows that both
 * need, so the order of the rows in a window rotates (rotations). With dilation no rows are reused, and windows share no columns: a
 * window begins at window * kernel_x * kernel_y. "Rows" are the columns of the image if that is cheaper: for windows of one column,
 * and for narrow images.
 *
 * One store writes eight channels of a pixel to eight strips. If the image has one channel, it writes eight pixels to eight columns.
 */
#include "bytes.h"
#include "taps.h"

enum { LANES = 8 };

/* A copy of `count` pixels, `from_step` bytes apart, to columns `to_step` bytes apart. */
struct columns {
    const uint8_t *from;
    int8_t *to;
    int32_t count, from_step, to_step;
};

/* Up to 8 channels of each pixel, to strips at `offsets`. */
MVE_INLINE void copy_lanes(const struct columns *c, uint16x8_t offsets, uint16x8_t flip, int32_t lanes)
{
    const uint8_t *from = c->from;
    int8_t *to = c->to;
    uint16x8_t bytes;
    __asm__ volatile("vctp.16 %[lanes]\n"
                     "wls lr, %[count], 2f\n"
                     "1: vpst\n"
                     "vldrbt.u16 %q[bytes], [%[from]]\n"
                     "add %[from], %[from], %[from_step]\n"
                     "veor %q[bytes], %q[bytes], %q[flip]\n"
                     "vpst\n"
                     "vstrbt.16 %q[bytes], [%[to], %q[offsets]]\n"
                     "add %[to], %[to], %[to_step]\n"
                     "le lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [from] "+l"(from), [bytes] "=&w"(bytes)
                     : [count] "r"(c->count), [from_step] "r"(c->from_step), [to_step] "r"(c->to_step), [lanes] "r"(lanes),
                       [flip] "w"(flip), [offsets] "w"(offsets)
                     : "lr", "p0", "memory");
}

/* 16 channels of each pixel; the second eight are stored `eight` bytes after the first. */
MVE_INLINE void copy_sixteen(const struct columns *c, uint16x8_t offsets, uint16x8_t flip, int32_t eight)
{
    const uint8_t *from = c->from;
    int8_t *to = c->to, *to_eight = c->to + eight;
    uint16x8_t bytes, more;
    __asm__ volatile("wls lr, %[count], 2f\n"
                     "1: vldrb.u16 %q[bytes], [%[from]]\n"
                     "vldrb.u16 %q[more], [%[from], #8]\n"
                     "add %[from], %[from], %[from_step]\n"
                     "veor %q[bytes], %q[bytes], %q[flip]\n"
                     "veor %q[more], %q[more], %q[flip]\n"
                     "vstrb.16 %q[bytes], [%[to], %q[offsets]]\n"
                     "vstrb.16 %q[more], [%[to_eight], %q[offsets]]\n"
                     "add %[to], %[to], %[to_step]\n"
                     "add %[to_eight], %[to_eight], %[to_step]\n"
                     "le lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [to_eight] "+r"(to_eight), [from] "+l"(from), [bytes] "=&w"(bytes), [more] "=&w"(more)
                     : [count] "r"(c->count), [from_step] "r"(c->from_step), [to_step] "r"(c->to_step), [flip] "w"(flip),
                       [offsets] "w"(offsets)
                     : "lr", "memory");
}

/* The same for int8, which needs no flip. */
MVE_INLINE void copy_sixteen_signed(const struct columns *c, uint16x8_t offsets, int32_t eight)
{
    const uint8_t *from = c->from;
    int8_t *to = c->to, *to_eight = c->to + eight;
    uint16x8_t bytes, more;
    __asm__ volatile("wls lr, %[count], 2f\n"
                     "1: vldrb.u16 %q[bytes], [%[from]]\n"
                     "vldrb.u16 %q[more], [%[from], #8]\n"
                     "add %[from], %[from], %[from_step]\n"
                     "vstrb.16 %q[bytes], [%[to], %q[offsets]]\n"
                     "vstrb.16 %q[more], [%[to_eight], %q[offsets]]\n"
                     "add %[to], %[to], %[to_step]\n"
                     "add %[to_eight], %[to_eight], %[to_step]\n"
                     "le lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [to_eight] "+r"(to_eight), [from] "+l"(from), [bytes] "=&w"(bytes), [more] "=&w"(more)
                     : [count] "r"(c->count), [from_step] "r"(c->from_step), [to_step] "r"(c->to_step), [offsets] "w"(offsets)
                     : "lr", "memory");
}

/* Neighbouring pixels of one channel, eight at a time. */
MVE_INLINE void copy_pixels(const struct columns *c, uint16x8_t flip)
{
    const uint8_t *from = c->from;
    int8_t *to = c->to;
    uint16x8_t bytes;
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n"
                     "1: vldrb.u16 %q[bytes], [%[from]], #8\n"
                     "veor %q[bytes], %q[bytes], %q[flip]\n"
                     "vstrb.16 %q[bytes], [%[to], %q[offsets]]\n"
                     "add %[to], %[to], %[eight]\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [from] "+l"(from), [bytes] "=&w"(bytes)
                     : [count] "r"(c->count), [eight] "r"(LANES * c->to_step), [flip] "w"(flip),
                       [offsets] "w"(vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)c->to_step))
                     : "lr", "memory");
}

static __attribute__((noinline)) void copy_columns(const struct columns *c, int32_t channels, const struct mve_taps *d)
{
    const uint16x8_t flip = vdupq_n_u16((uint16_t)d->flip);
    if (c->from_step == 1) {
        copy_pixels(c, flip);
        return;
    }
    const uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)d->pitch);
    if (channels == 2 * LANES) {
        if (d->flip != 0) {
            copy_sixteen(c, offsets, flip, LANES * d->pitch);
        } else {
            copy_sixteen_signed(c, offsets, LANES * d->pitch);
        }
        return;
    }
    copy_lanes(c, offsets, flip, channels);
    if (channels > LANES) {
        const struct columns more = {c->from + LANES, c->to + LANES * d->pitch, c->count, c->from_step, c->to_step};
        copy_lanes(&more, offsets, flip, channels - LANES);
    }
}

/* A line of the strips, of a row that lies outside of the image. */
static __attribute__((noinline)) void fill_line(int8_t *to, int32_t count, int32_t to_step, int32_t channels, const struct mve_taps *d)
{
    const uint16x8_t fill = vdupq_n_u16((uint16_t)d->fill);
    const uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)d->pitch);
    for (; channels > 0; channels -= LANES) {
        const mve_pred16_t lanes = vctp16q((uint32_t)channels);
        int8_t *at = to;
        for (int32_t i = 0; i < count; i++) {
            vstrbq_scatter_offset_p_u16((uint8_t *)at, offsets, fill, lanes);
            at += to_step;
        }
        to += LANES * d->pitch;
    }
}

/* Row `row` of the image, which may lie outside of it, into line `line`. Columns outside of the image hold `fill` from the start. */
static __attribute__((noinline)) void load_row(int8_t *strips, const uint8_t *image, int32_t row, int32_t line, int32_t channels, const struct mve_taps *d)
{
    const int32_t is_outside = row < 0 || row >= d->height;
    const uint8_t *const from = image + row * d->line;
    if (d->dilation_x == 1) {
        const int32_t room = (d->out_width - 1) * d->stride_x + d->kernel_x - d->left;
        const int32_t count = d->width < room ? d->width : room;
        int8_t *const to = strips + d->left * d->kernel_y + line;
        if (count <= 0) {
            return;
        }
        if (is_outside) {
            fill_line(to, count, d->kernel_y, channels, d);
        } else {
            const struct columns c = {from, to, count, d->pixel, d->kernel_y};
            copy_columns(&c, channels, d);
        }
        return;
    }
    for (int32_t kx = 0; kx < d->kernel_x; kx++) {
        const int32_t start = kx * d->dilation_x - d->left; /* of the first window's first tap */
        const int32_t first = start < 0 ? (d->stride_x - 1 - start) / d->stride_x : 0;
        const int32_t behind = start < d->width ? (d->width - start + d->stride_x - 1) / d->stride_x : 0;
        const int32_t count = (behind < d->out_width ? behind : d->out_width) - first;
        int8_t *const to = strips + first * d->step + kx * d->kernel_y + line;
        if (count <= 0) {
            continue;
        }
        if (is_outside) {
            fill_line(to, count, d->step, channels, d);
        } else {
            const struct columns c = {from + (start + first * d->stride_x) * d->pixel, to, count, d->stride_x * d->pixel, d->step};
            copy_columns(&c, channels, d);
        }
    }
}

/* Loads the rows that the windows of output row `oy` need and that are not loaded yet. Returns the line of their first row. `next` is the
 * next row of the padded image to load, if rows are reused. It is separate from the loop over rows, so that all functions below share it.
 */
static __attribute__((noinline)) int32_t load_rows(int8_t *strips, int32_t *next, const uint8_t *image, int32_t oy,
                                                   int32_t channels, const struct mve_taps *d)
{
    const int32_t start = oy * d->stride_y;
    if (d->dilation_y > 1) {
        for (int32_t ky = 0; ky < d->kernel_y; ky++) {
            load_row(strips, image, start + ky * d->dilation_y - d->top, ky, channels, d);
        }
        return 0;
    }
    int32_t row = *next < start ? start : *next;
    int32_t line = row % d->kernel_y;
    for (; row < start + d->kernel_y; row++) {
        if (row >= d->top) { /* rows above the image are filled at the start */
            load_row(strips, image, row - d->top, line, channels, d);
        }
        line = line + 1 == d->kernel_y ? 0 : line + 1;
    }
    *next = row;
    return start % d->kernel_y;
}

MVE_INLINE void depthwise(const uint8_t *x, const int32_t *params, const int8_t *weights, const uint8_t *rotations, uint8_t *y,
                          int32_t channels, int8_t *strips, const struct mve_taps *d, int32_t parts, mve_taps_row *row)
{
    int8_t *const rotated = strips + d->strips;
    const int32_t is_shared = d->pitch == 0; /* all outputs in one row */
    const int32_t at_once = is_shared ? d->multiplier : channels, rows = is_shared ? 1 : d->multiplier;
    const int32_t params_step = d->lanes * 3, weights_step = d->lanes * d->taps * parts, rotation_step = d->chunks * 16;
    int32_t next = 0;
    (void)mve_set((uint8_t *)strips, d->strips, vdupq_n_u8((uint8_t)d->fill));
    if (d->rotated > 0) {
        (void)mve_set((uint8_t *)rotated, d->rotated, vdupq_n_u8(0));
    }
    for (int32_t oy = 0; oy < d->out_height; oy++) {
        const int32_t first = load_rows(strips, &next, x, oy, channels, d);
        const int32_t *params_j = params;
        const int8_t *weights_j = weights;
        for (int32_t j = 0; j < rows; j++) {
            row(y + j, strips, params_j, weights_j, rotations + first * rotation_step, at_once, d, rotated);
            params_j += params_step;
            weights_j += weights_step;
        }
        y += d->out_line;
    }
}

/* One function for each row function, so that only what a network needs is linked. */
#define MVE_DEPTHWISE_TAPS(variant, parts)                                                                                    \
    void mve_depthwise_taps_##variant(const void *x, const int32_t *params, const int8_t *weights, const uint8_t *rotations,  \
                                      void *y, int32_t channels, int8_t *strips, const int32_t *fields)                       \
    {                                                                                                                         \
        depthwise(x, params, weights, rotations, y, channels, strips, (const struct mve_taps *)fields, parts,                 \
                  mve_taps_##variant);                                                                                        \
    }

MVE_DEPTHWISE_TAPS(exact_1, 1)
MVE_DEPTHWISE_TAPS(exact_2, 1)
MVE_DEPTHWISE_TAPS(exact_3, 1)
MVE_DEPTHWISE_TAPS(exact_4, 1)
MVE_DEPTHWISE_TAPS(exact_6, 1)
MVE_DEPTHWISE_TAPS(lowered_1, 1)
MVE_DEPTHWISE_TAPS(lowered_2, 1)
MVE_DEPTHWISE_TAPS(lowered_3, 1)
MVE_DEPTHWISE_TAPS(lowered_4, 1)
MVE_DEPTHWISE_TAPS(lowered_6, 1)
MVE_DEPTHWISE_TAPS(lowered_any, 1)
MVE_DEPTHWISE_TAPS(lowered_any_wide, 2)
MVE_DEPTHWISE_TAPS(shifted_any, 1)
MVE_DEPTHWISE_TAPS(shifted_any_wide, 2)
MVE_DEPTHWISE_TAPS(lowered_many, 1)
MVE_DEPTHWISE_TAPS(lowered_many_wide, 2)
MVE_DEPTHWISE_TAPS(shifted_many, 1)
MVE_DEPTHWISE_TAPS(shifted_many_wide, 2)
