#include "panel.h"

#include "dsp.h"

/* Writes one row of a panel, step after step.
 *
 * step     words from a step of the row to its next
 * adjust   whether activations are flipped and added up in `sum`; a constant where this is inlined
 */
struct writer {
    uint32_t *to;
    int32_t step;
    int32_t adjust;
    uint32_t flip;
    int32_t sum;
};

DSP_INLINE void put_step(struct writer *w, uint32_t halves)
{
    if (w->adjust) {
        w->sum = dsp_smlad(halves, 0x00010001, w->sum);
    }
    *w->to = halves;
    w->to += w->step;
}

DSP_INLINE void put_four(struct writer *w, uint32_t bytes)
{
    if (w->adjust) {
        bytes ^= w->flip;
    }
    put_step(w, dsp_even(bytes));
    put_step(w, dsp_odd(bytes));
}

/* One to three bytes, in the lower bytes of a word. Its other bytes are 0 (flipped back, so that they are not summed). */
DSP_INLINE void put_rest(struct writer *w, uint32_t bytes, int32_t count)
{
    if (w->adjust) {
        bytes ^= w->flip & ((1u << (8 * count)) - 1);
    }
    put_step(w, dsp_low_halves(dsp_even(bytes), dsp_odd(bytes)));
    if (count == 3) {
        put_step(w, dsp_even(bytes >> 16));
    }
}

/* One to three bytes from memory into the lower bytes of a word. */
DSP_INLINE uint32_t gather_rest(const uint8_t *from, int32_t count)
{
    uint32_t bytes = from[0];
    if (count > 1) {
        bytes |= (uint32_t)from[1] << 8;
    }
    if (count > 2) {
        bytes |= (uint32_t)from[2] << 16;
    }
    return bytes;
}

DSP_INLINE void put_run(struct writer *w, const uint8_t *from, int32_t count)
{
    for (; count >= 16; count -= 16) {
        put_four(w, dsp_load(from));
        put_four(w, dsp_load(from + 4));
        put_four(w, dsp_load(from + 8));
        put_four(w, dsp_load(from + 12));
        from += 16;
    }
    for (; count >= 4; count -= 4) {
        put_four(w, dsp_load(from));
        from += 4;
    }
    if (count > 0) {
        put_rest(w, gather_rest(from, count), count);
    }
}

/* Elements at, at + 1, ... (up to four) of a run. Elements [first, last) are inside the image; element `first` is at `from`. */
DSP_INLINE uint32_t gather_edge(const uint8_t *from, int32_t first, int32_t last, int32_t at, uint32_t fills)
{
    const int32_t begin = first > at ? first - at : 0, end = last - at;
    if (begin >= end || begin > 3) {
        return fills;
    }
    from += at + begin - first;
    if (begin == 0 && end > 3) {
        return dsp_load(from);
    }
    const int32_t count = (end < 4 ? end : 4) - begin;
    const uint32_t mask = ((1u << (8 * count)) - 1) << (8 * begin);
    return (fills & ~mask) | gather_rest(from, count) << (8 * begin);
}

DSP_INLINE void put_edge_run(struct writer *w, const uint8_t *from, int32_t first, int32_t last, int32_t count, uint32_t fills)
{
    int32_t at = 0;
    for (; at + 4 <= count; at += 4) {
        put_four(w, gather_edge(from, first, last, at, fills));
    }
    if (at < count) {
        const uint32_t bytes = gather_edge(from, first, last, at, fills);
        put_rest(w, bytes & ((1u << (8 * (count - at))) - 1), count - at);
    }
}

DSP_INLINE struct writer writer_of(int32_t *panel, int32_t row, int32_t rows, int32_t adjust, int32_t flip)
{
    return (struct writer){
        .to = (uint32_t *)panel + row, .step = rows, .adjust = adjust, .flip = (uint32_t)flip * 0x01010101u};
}

DSP_INLINE void put_offset(struct writer *w, int32_t offsets, int32_t weight_zero_point)
{
    if (offsets) {
        *w->to = (uint32_t)(-weight_zero_point * w->sum);
    }
}

DSP_INLINE void panel_rows(int32_t *panel, const uint8_t *x, int32_t rows, int32_t depth, int32_t adjust, int32_t flip,
                           int32_t offsets, int32_t weight_zero_point)
{
    for (int32_t row = 0; row < rows; row++) {
        struct writer w = writer_of(panel, row, rows, adjust, flip);
        put_run(&w, x, depth);
        put_offset(&w, offsets, weight_zero_point);
        x += depth;
    }
}

void arm_dsp_panel_rows(int32_t *panel, const void *x, int32_t rows, int32_t depth, int32_t flip, int32_t offsets,
                        int32_t weight_zero_point)
{
    if (flip != 0 || offsets) {
        panel_rows(panel, x, rows, depth, 1, flip, offsets, weight_zero_point);
    } else {
        panel_rows(panel, x, rows, depth, 0, 0, 0, 0);
    }
}

/* Two planes of three or four neighbouring pixels: a step of all rows. */
DSP_INLINE void put_planes(uint32_t *to, uint32_t plane0, uint32_t plane1, int32_t rows)
{
    const uint32_t even0 = dsp_even(plane0), even1 = dsp_even(plane1);
    const uint32_t odd0 = dsp_odd(plane0), odd1 = dsp_odd(plane1);
    to[0] = dsp_low_halves(even0, even1);
    to[1] = dsp_low_halves(odd0, odd1);
    to[2] = dsp_high_halves(even0, even1);
    if (rows > 3) {
        to[3] = dsp_high_halves(odd0, odd1);
    }
}

/* All rows at once, a constant number where this is inlined. The last planes are loaded byte by byte where a word would reach
 * beyond them. */
DSP_INLINE void whole_panel_of_planes(uint32_t *to, const uint8_t *x, int32_t depth, int32_t stride, int32_t rows)
{
    for (; depth > 2; depth -= 2) {
        put_planes(to, dsp_load(x), dsp_load(x + stride), rows);
        x += 2 * stride;
        to += rows;
    }
    const uint32_t plane0 = rows > 3 ? dsp_load(x) : gather_rest(x, 3);
    const uint32_t plane1 = depth < 2 ? 0 : rows > 3 ? dsp_load(x + stride) : gather_rest(x + stride, 3);
    put_planes(to, plane0, plane1, rows);
}

static void panel_planes(int32_t *panel, const uint8_t *x, int32_t rows, int32_t depth, int32_t stride, int32_t flip,
                         int32_t offsets, int32_t weight_zero_point)
{
    for (int32_t row = 0; row < rows; row++) {
        struct writer w = writer_of(panel, row, rows, 1, 0);
        const uint8_t *from = x + row;
        for (int32_t k = 0; k < depth; k += 2) {
            const int32_t element = (int8_t)(*from ^ flip), next = k + 1 < depth ? (int8_t)(from[stride] ^ flip) : 0;
            put_step(&w, dsp_low_halves((uint32_t)element, (uint32_t)next));
            from += 2 * stride;
        }
        put_offset(&w, offsets, weight_zero_point);
    }
}

void arm_dsp_panel_planes(int32_t *panel, const void *x, int32_t rows, int32_t depth, int32_t stride, int32_t flip,
                          int32_t offsets, int32_t weight_zero_point)
{
    if (rows == 4 && flip == 0 && !offsets) {
        whole_panel_of_planes((uint32_t *)panel, x, depth, stride, 4);
    } else if (rows == 3 && flip == 0 && !offsets) {
        whole_panel_of_planes((uint32_t *)panel, x, depth, stride, 3);
    } else {
        panel_planes(panel, x, rows, depth, stride, flip, offsets, weight_zero_point);
    }
}

/* A window that starts at (y, x) of the image, of a panel of `rows` rows; put_runs is for three or four of them. */
struct window {
    const uint8_t *image;
    const struct arm_dsp_geometry *geometry;
    int32_t y, x, rows;
    arm_dsp_put_runs *put_runs;
};

/* The range of `taps` taps, `dilation` apart, that is inside [0, size): first tap, and one past the last. */
struct span {
    int32_t first, last;
};

static __attribute__((noinline)) struct span inside(int32_t start, int32_t taps, int32_t dilation, int32_t size)
{
    struct span in = {0, taps};
    if (start < 0 || start + (taps - 1) * dilation >= size) {
        in.first = start < 0 ? (dilation - 1 - start) / dilation : 0;
        in.last = size > start ? (size - start + dilation - 1) / dilation : 0;
        in.last = in.last < taps ? in.last : taps;
        in.first = in.first < in.last ? in.first : in.last;
    }
    return in;
}

/* `to` is where the next step goes, here and below. */
static __attribute__((noinline)) uint32_t *put_fills(uint32_t *to, int32_t rows, int32_t steps, uint32_t halves)
{
    for (; steps >= 4; steps -= 4) {
        to[0] = halves;
        to[rows] = halves;
        to[2 * rows] = halves;
        to[3 * rows] = halves;
        to += 4 * rows;
    }
    for (; steps > 0; steps--) {
        *to = halves;
        to += rows;
    }
    return to;
}

/* A row of a window that is partly outside of the image on the left or on the right. */
static uint32_t *put_edge_row(uint32_t *to, const uint8_t *from, struct span in, const struct window *v)
{
    const struct arm_dsp_geometry *const g = v->geometry;
    const int32_t channels = g->channels, taps = g->kernel_x;
    const uint32_t fill = (uint32_t)g->fill;
    if (g->dilation_x == 1 && channels % 4 != 0) { /* a step has elements of several pixels */
        struct writer w = {.to = to, .step = v->rows};
        put_edge_run(&w, from, in.first * channels, in.last * channels, taps * channels, (fill & 0xff) * 0x01010101u);
        return w.to;
    }
    const uint32_t halves = dsp_low_halves(fill, fill);
    const int32_t steps = (channels + 1) / 2; /* of a pixel */
    to = put_fills(to, v->rows, in.first * steps, halves);
    to = v->put_runs(to, from, in.last - in.first, channels, g->dilation_x * channels);
    return put_fills(to, v->rows, (taps - in.last) * steps, halves);
}

static __attribute__((noinline)) void put_window(uint32_t *to, const struct window *v)
{
    const struct arm_dsp_geometry *const g = v->geometry;
    const int32_t channels = g->channels, taps = g->kernel_x, row_step = g->dilation_y * g->width * channels;
    const struct span rows = inside(v->y, g->kernel_y, g->dilation_y, g->height);
    const struct span columns = inside(v->x, taps, g->dilation_x, g->width);
    const int32_t joined = g->dilation_x == 1; /* a row is one run */
    const int32_t steps = joined ? (taps * channels + 1) / 2 : taps * ((channels + 1) / 2);
    const uint32_t halves = dsp_low_halves((uint32_t)g->fill, (uint32_t)g->fill);
    const uint8_t *from = v->image + (v->y + rows.first * g->dilation_y) * g->width * channels +
                          (v->x + columns.first * g->dilation_x) * channels;
    to = put_fills(to, v->rows, rows.first * steps, halves);
    if (joined && columns.last - columns.first == taps) {
        to = v->put_runs(to, from, rows.last - rows.first, taps * channels, row_step);
    } else {
        for (int32_t ky = rows.first; ky < rows.last; ky++) {
            to = put_edge_row(to, from, columns, v);
            from += row_step;
        }
    }
    put_fills(to, v->rows, (g->kernel_y - rows.last) * steps, halves);
}

/* The same for any number of rows, with flipped bytes and their sum. */
static void put_window_adjusted(struct writer *w, const struct window *v)
{
    const struct arm_dsp_geometry *const g = v->geometry;
    const uint32_t fills = (uint8_t)g->fill * 0x01010101u;
    const int32_t channels = g->channels, width = g->width, kernel_x = g->kernel_x;
    const int32_t taps = g->dilation_x == 1 ? kernel_x : 1; /* of a run */
    int32_t y = v->y;
    for (int32_t ky = g->kernel_y; ky > 0; ky--) {
        const int32_t inside_rows = y >= 0 && y < g->height;
        const uint8_t *const row = v->image + y * width * channels;
        int32_t x = v->x;
        for (int32_t kx = 0; kx < kernel_x; kx += taps) {
            const int32_t first = x < 0 ? -x : 0;
            const int32_t last = inside_rows ? (width - x < taps ? width - x : taps) : 0;
            put_edge_run(w, row + (x + first) * channels, first * channels, last * channels, taps * channels, fills);
            x += g->dilation_x;
        }
        y += g->dilation_y;
    }
}

/* One row of a panel of any number of rows. */
static __attribute__((noinline)) void put_row_adjusted(int32_t *panel, int32_t row, int32_t rows, const struct window *v, int32_t flip, int32_t offsets,
                             int32_t weight_zero_point)
{
    struct writer w = writer_of(panel, row, rows, 1, flip);
    put_window_adjusted(&w, v);
    put_offset(&w, offsets, weight_zero_point);
}

/* Any windows. Windows inside the image that are runs of whole rows are passed to put_runs directly. */
static __attribute__((noinline)) void any_windows(int32_t *panel, struct window *v, int32_t flip, int32_t offsets,
                                                  int32_t weight_zero_point)
{
    const struct arm_dsp_geometry *const g = v->geometry;
    const int32_t plain = v->rows >= 3 && flip == 0 && !offsets;
    const int32_t kernel_y = g->kernel_y, width = g->width, channels = g->channels, stride_x = g->stride_x;
    const int32_t last_y = g->height - (kernel_y - 1) * g->dilation_y - 1;
    const int32_t last_x = plain && g->dilation_x == 1 ? width - g->kernel_x : -1;
    const int32_t count = g->kernel_x * channels, row_step = g->dilation_y * width * channels;
    const int32_t end_x = g->out_width * stride_x - g->left;
    v->put_runs = v->rows == 4 ? arm_dsp_put_runs_r4 : arm_dsp_put_runs_r3;
    for (int32_t row = 0; row < v->rows; row++) {
        if (v->y >= 0 && v->y <= last_y && v->x >= 0 && v->x <= last_x) {
            const uint8_t *const from = v->image + (v->y * width + v->x) * channels;
            v->put_runs((uint32_t *)panel + row, from, kernel_y, count, row_step);
        } else if (plain) {
            put_window((uint32_t *)panel + row, v);
        } else {
            put_row_adjusted(panel, row, v->rows, v, flip, offsets, weight_zero_point);
        }
        v->x += stride_x;
        if (v->x == end_x) {
            v->x = -g->left;
            v->y += g->stride_y;
        }
    }
}

/* Windows side by side that are partly above or below the image. */
static __attribute__((noinline)) void upper_or_lower_windows(uint32_t *to, const struct window *v)
{
    const struct arm_dsp_geometry *const g = v->geometry;
    const int32_t count = g->kernel_x * g->channels, row_step = g->dilation_y * g->width * g->channels;
    const int32_t words = (count + 1) / 2 * v->rows; /* of a run */
    const struct span rows = inside(v->y, g->kernel_y, g->dilation_y, g->height);
    const uint8_t *const from = v->image + ((v->y + rows.first * g->dilation_y) * g->width + v->x) * g->channels;
    const uint32_t halves = dsp_low_halves((uint32_t)g->fill, (uint32_t)g->fill);
    to = put_fills(to, 1, rows.first * words, halves);
    if (rows.first < rows.last) {
        to = (v->rows == 4 ? arm_dsp_put_rows_r4 : arm_dsp_put_rows_r3)(to, from, rows.last - rows.first, count, row_step,
                                                                        g->stride_x * g->channels);
    }
    put_fills(to, 1, (g->kernel_y - rows.last) * words, halves);
}

/* The usual case: windows side by side inside the image, each a run of complete rows. */
void arm_dsp_panel_windows(int32_t *panel, const void *x, int32_t first, int32_t rows, const int32_t *geometry, int32_t flip,
                           int32_t offsets, int32_t weight_zero_point)
{
    const struct arm_dsp_geometry *const g = (const struct arm_dsp_geometry *)geometry;
    const int32_t out_y = first / g->out_width, out_x = first - out_y * g->out_width, channels = g->channels;
    const int32_t top = out_y * g->stride_y - g->top, left = out_x * g->stride_x - g->left;
    const int32_t bottom = top + (g->kernel_y - 1) * g->dilation_y, right = left + (rows - 1) * g->stride_x + g->kernel_x;
    const int32_t together = rows >= 3 && flip == 0 && !offsets && g->dilation_x == 1 && out_x + rows <= g->out_width &&
                             left >= 0 && right <= g->width;
    if (together && top >= 0 && bottom < g->height) {
        const uint8_t *const from = (const uint8_t *)x + (top * g->width + left) * channels;
        (rows == 4 ? arm_dsp_put_rows_r4 : arm_dsp_put_rows_r3)((uint32_t *)panel, from, g->kernel_y, g->kernel_x * channels,
                                                                g->dilation_y * g->width * channels, g->stride_x * channels);
        return;
    }
    struct window v = {.image = x, .geometry = g, .y = top, .x = left, .rows = rows};
    if (together) {
        upper_or_lower_windows((uint32_t *)panel, &v);
    } else {
        any_windows(panel, &v, flip, offsets, weight_zero_point);
    }
}
