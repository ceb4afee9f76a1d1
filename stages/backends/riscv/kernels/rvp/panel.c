#include "panel.h"

#include "chunk_writer.h"

/* Loads 1 to W bytes from any address, into the low bytes of the result. The other bytes are arbitrary. */
RVP_INLINE rvp_word gather(const int8_t *from, int bytes)
{
    const int offset = (int)((uintptr_t)from & (W - 1));
    rvp_word x = rvp_load(from - offset) >> (8 * offset);
    if (bytes > W - offset) {
        x |= rvp_load(from - offset + W) << (8 * (W - offset));
    }
    return x;
}

/* A run. Its bytes [first, last) are inside the image, at `from`; its other bytes are `fill`. */
RVP_INLINE void put_edge_run(struct writer *w, const int8_t *from, int first, int last, int bytes, rvp_word fill)
{
    for (int at = 0; at < bytes; at += W) {
        const int begin = first > at ? first : at, end = last < at + W ? last : at + W;
        rvp_word x = fill;
        if (begin < end) {
            const int count = end - begin, place = 8 * (begin - at);
            const rvp_word mask = (~(rvp_word)0 >> (8 * (W - count))) << place;
            x = rvp_select_bits(mask, gather(from + (begin - first), count) << place, fill);
        }
        if (bytes - at > W - 4) {
            put_register(w, x);
        } else {
            put_chunk(w, x);
        }
    }
}

RVP_INLINE void put_offset(struct writer *w, int weight_zero_point)
{
    int32_t sum = (int32_t)w->sum;
    if (RVP_LANES == 2) {
        sum += (int32_t)((uint64_t)w->sum >> 32);
    }
    rvp_store(w->to, rvp_splat32(-weight_zero_point * sum));
}

/* Bytes of a panel whose rows are `chunks` chunks. */
RVP_INLINE int panel_bytes(int chunks, int rows, int offsets)
{
    return (chunks + (offsets ? 1 : 0)) * rows * W;
}

/* Rows that begin and end with whole registers, or on RV64 with whole chunks (`step` bytes): a step of all rows of a
 * panel at a time.
 */
RVP_INLINE void panel_steps(int32_t *panel, const int8_t *x, int rows, int panels, int depth, int stride, int step)
{
    int8_t *to = (int8_t *)panel;
    for (; panels > 0; panels--) {
        const int8_t *const end = x + depth;
        for (const int8_t *at = x; at != end; at += step) {
            const int8_t *from = at;
#pragma GCC unroll 5
            for (int row = 0; row < rows; row++) {
                if (step == W) {
                    const rvp_word activations = rvp_load(from);
                    rvp_store(to + row * W, rvp_pack_all(activations));
                    if (RVP_LANES == 2) {
                        rvp_store(to + (rows + row) * W, rvp_packu(activations, activations));
                    }
                } else {
                    rvp_store(to + row * W, rvp_pack_all(rvp_load_lane(from)));
                }
                from += stride;
            }
            to += rows * W * (step / 4);
        }
        x += rows * stride;
    }
}

RVP_INLINE void panel_rows(int32_t *panel, const int8_t *x, int rows, int panels, int depth, int stride, int adjust,
                           int flip, int weight_zero_point)
{
    const int aligned = (((uintptr_t)x | (uintptr_t)stride) & (W - 1)) == 0;
    /* From a panel's first chunks to the next panel's. */
    const int skip = panel_bytes((depth + 3) / 4, rows, adjust && weight_zero_point != 0) - rows * W;
    int8_t *to = (int8_t *)panel;
    int column = 0;
    for (int row = rows * panels; row > 0; row--) {
        struct writer w = writer_of(to, rows, adjust, flip);
        to += W;
        if (++column == rows) {
            column = 0;
            to += skip;
        }
        if (aligned) {
            put_aligned_run(&w, x, depth);
        } else {
            put_run(&w, x, depth);
        }
        if (adjust && weight_zero_point != 0) {
            put_offset(&w, weight_zero_point);
        }
        x += stride;
    }
}

/* A run of `bytes` bytes that is partly outside of the image: its bytes [first, last) are inside. */
struct edge {
    int bytes, first, last;
};

RVP_INLINE struct edge edge_at(int x, int taps, int width, int channels)
{
    const int first = x < 0 ? -x : 0;
    const int last = width - x < taps ? width - x : taps;
    return (struct edge){taps * channels, first < last ? first * channels : 0, first < last ? last * channels : 0};
}

/* The run whose first byte inside the image is at `from`. */
RVP_INLINE void put_edge(struct writer *w, const int8_t *from, struct edge e, int inside, rvp_word fill)
{
    if (!inside || e.first == e.last) {
        put_fill(w, fill, e.bytes);
    } else if ((e.first & 3) == 0 && ((e.last & 3) == 0 || e.last == e.bytes)) { /* chunks are inside or outside */
        put_fill(w, fill, e.first);
        put_run(w, from, e.last - e.first);
        put_fill(w, fill, e.bytes - e.last);
    } else {
        put_edge_run(w, from, e.first, e.last, e.bytes, fill);
    }
}

/* Whether a row of a window is one run; otherwise each of its pixels is. */
RVP_INLINE int rows_are_runs(const struct rvp_geometry *g)
{
    return g->dilation_x == 1 && g->pixel_step == g->channels;
}

/* A window that starts at (y, x) of the image and is partly outside of it. */
RVP_INLINE struct writer edge_window(struct writer w, const int8_t *image, int y, int x, const struct rvp_geometry *g)
{
    const rvp_word fill = rvp_splat8(g->fill);
    const int width = g->width, height = g->height, channels = g->channels, dilation_y = g->dilation_y;
    const struct edge e = edge_at(x, g->kernel_x, width, channels);
    const int8_t *from = image + (y * width + x) * channels + e.first;
    for (int ky = g->kernel_y; ky > 0; ky--) {
        put_edge(&w, from, e, y >= 0 && y < height, fill);
        y += dilation_y;
        from += dilation_y * width * channels;
    }
    return w;
}

/* The same if each of its pixels is a run. */
RVP_INLINE struct writer edge_taps(struct writer w, const int8_t *image, int y, int x, const struct rvp_geometry *g)
{
    const rvp_word fill = rvp_splat8(g->fill);
    const int width = g->width, channels = g->channels, step = g->pixel_step;
    for (int ky = 0; ky < g->kernel_y; ky++) {
        const int row = y + ky * g->dilation_y;
        const int inside = row >= 0 && row < g->height;
        for (int kx = 0; kx < g->kernel_x; kx++) {
            const int column = x + kx * g->dilation_x;
            if (inside && column >= 0 && column < width) {
                put_run(&w, image + (row * width + column) * step, channels);
            } else {
                put_fill(&w, fill, channels);
            }
        }
    }
    return w;
}

static struct writer put_edge_window(struct writer w, const int8_t *image, int y, int x, const struct rvp_geometry *g)
{
    return rows_are_runs(g) ? edge_window(w, image, y, x, g) : edge_taps(w, image, y, x, g);
}

/* A window inside the image: rows of `bytes` bytes or, if its pixels are not neighbours, `taps` runs of `bytes` bytes that are
 * `tap_step` apart.
 */
struct window {
    int rows, row_step;
    int taps, tap_step;
    int bytes;
};

/* How windows are copied: as rows of so many chunks, as rows or short taps of whole registers, or as any runs. NINE_BYTES are rows of
 * three chunks, whole registers and one byte over, in images whose rows are whole registers: first layers with three
 * channels.
 */
enum { ALIGNED_ROWS = 0, ANY_RUNS = -1, NINE_BYTES = -2, ALIGNED_TAPS = -3, SHORT_ROWS = 4 };

RVP_INLINE void put_inner_window(struct writer *w, const int8_t *from, const struct window *v, int how)
{
    if (how == NINE_BYTES) {
        struct place p = place_of(from);
        for (int ky = v->rows; ky > 0; ky--) {
            put_short_run(w, p, 0, 3, 1);
            p.first += v->row_step;
        }
        return;
    }
    for (int ky = v->rows; ky > 0; ky--) {
        if (how == ALIGNED_ROWS) {
            put_aligned_run(w, from, v->bytes);
        } else if (how == ALIGNED_TAPS) {
            const int8_t *tap = from;
            for (int kx = v->taps; kx > 0; kx--) {
                const int8_t *at = tap;
                do {
                    put_register(w, rvp_load(at));
                    at += W;
                } while (at != tap + v->bytes);
                tap += v->tap_step;
            }
        } else if (how != ANY_RUNS) {
            put_short_run(w, place_of(from), from + v->bytes - 1, how, 0);
        } else {
            for (int kx = 0; kx < v->taps; kx++) {
                put_run(w, from + kx * v->tap_step, v->bytes);
            }
        }
        from += v->row_step;
    }
}

RVP_INLINE int smaller(int a, int b)
{
    return a < b ? a : b;
}

RVP_INLINE void panel_windows(int32_t *panel, const int8_t *image, int first, int rows, int panels,
                              const struct rvp_geometry *g, int how, int adjust, int flip, int weight_zero_point)
{
    const int whole_rows = rows_are_runs(g), step = g->pixel_step;
    const struct window v = {
        .rows = g->kernel_y,
        .row_step = g->dilation_y * g->width * step,
        .taps = whole_rows ? 1 : g->kernel_x,
        .tap_step = g->dilation_x * step,
        .bytes = (whole_rows ? g->kernel_x : 1) * g->channels,
    };
    const int inner_y = g->height - (g->kernel_y - 1) * g->dilation_y; /* windows that start there are partly outside */
    const int inner_x = g->width - (g->kernel_x - 1) * g->dilation_x;
    const int stride_x = g->stride_x, x_step = g->stride_x * step;
    const int out_y = first / g->out_width;
    int left = first - out_y * g->out_width; /* pixels of the output until its row ends */
    int y = out_y * g->stride_y - g->top, x = left * stride_x - g->left;
    left = g->out_width - left;
    const int chunks = v.rows * v.taps * ((v.bytes + 3) / 4);
    const int next_panel = panel_bytes(chunks, rows, adjust && weight_zero_point != 0);
    int8_t *to = (int8_t *)panel, *end = to + rows * W; /* of the panel's first chunks */
    while (panels > 0) {
        int inner = 0; /* pixels from here on whose windows lie inside */
        if (y >= 0 && y < inner_y && x >= 0 && x < inner_x) {
            inner = smaller(smaller((inner_x - x + stride_x - 1) / stride_x, left), (int)(end - to) / W);
        }
        const int8_t *from = image + (y * g->width + x) * step;
        for (int i = 0; i < inner; i++) {
            struct writer w = writer_of(to, rows, adjust, flip);
            put_inner_window(&w, from, &v, how);
            if (adjust && weight_zero_point != 0) {
                put_offset(&w, weight_zero_point);
            }
            to += W;
            from += x_step;
        }
        if (inner == 0) {
            struct writer w = put_edge_window(writer_of(to, rows, adjust, flip), image, y, x, g);
            if (adjust && weight_zero_point != 0) {
                put_offset(&w, weight_zero_point);
            }
            to += W;
            inner = 1;
        }
        x += inner * stride_x;
        left -= inner;
        if (left == 0) {
            x = -g->left;
            y += g->stride_y;
            left = g->out_width;
        }
        if (to == end) {
            to += next_panel - rows * W;
            end += next_panel;
            panels--;
        }
    }
}

/* The usual cases are compiled separately: 5 rows, nothing to adjust, pixels that are whole registers or chunks. */
void rvp_panel_rows(int32_t *panel, const void *x, int rows, int panels, int depth, int stride, int flip,
                    int weight_zero_point)
{
    const uintptr_t places = (uintptr_t)x | (uintptr_t)stride | (uintptr_t)depth;
    if (flip != 0 || weight_zero_point != 0) {
        panel_rows(panel, x, rows, panels, depth, stride, 1, flip, weight_zero_point);
    } else if (rows == 5 && places % W == 0) {
        panel_steps(panel, x, 5, panels, depth, stride, W);
    } else if (rows == 5 && RVP_LANES == 2 && places % 4 == 0) {
        panel_steps(panel, x, 5, panels, depth, stride, 4);
    } else {
        panel_rows(panel, x, rows, panels, depth, stride, 0, 0, 0);
    }
}

static int how_to_copy(const int8_t *image, const struct rvp_geometry *g)
{
    if (!rows_are_runs(g)) {
        const uintptr_t places = (uintptr_t)image | (uintptr_t)g->channels | (uintptr_t)g->pixel_step;
        return (places & (W - 1)) == 0 && g->channels <= 2 * W ? ALIGNED_TAPS : ANY_RUNS;
    }
    const int bytes = g->kernel_x * g->channels, row_step = g->dilation_y * g->width * g->channels;
    if (bytes == 9 && row_step % W == 0) {
        return NINE_BYTES;
    }
    if (bytes <= 4 * SHORT_ROWS) {
        return (bytes + 3) / 4;
    }
    return (((uintptr_t)image | (uintptr_t)g->channels) & (W - 1)) == 0 ? ALIGNED_ROWS : ANY_RUNS;
}

void rvp_panel_windows(int32_t *panel, const void *image, int first, int rows, int panels, const int32_t *geometry,
                       int flip, int weight_zero_point)
{
    const struct rvp_geometry *const g = (const struct rvp_geometry *)geometry;
    const int how = how_to_copy(image, g);
    if (flip != 0 || weight_zero_point != 0) {
        if (how == NINE_BYTES) {
            panel_windows(panel, image, first, rows, panels, g, NINE_BYTES, 1, flip, weight_zero_point);
        } else {
            panel_windows(panel, image, first, rows, panels, g, ANY_RUNS, 1, flip, weight_zero_point);
        }
    } else if (rows != 5 || how == ANY_RUNS) {
        panel_windows(panel, image, first, rows, panels, g, ANY_RUNS, 0, 0, 0);
    } else if (how == NINE_BYTES) {
        panel_windows(panel, image, first, 5, panels, g, NINE_BYTES, 0, 0, 0);
    } else if (how == ALIGNED_ROWS) {
        panel_windows(panel, image, first, 5, panels, g, ALIGNED_ROWS, 0, 0, 0);
    } else if (how == ALIGNED_TAPS) {
        panel_windows(panel, image, first, 5, panels, g, ALIGNED_TAPS, 0, 0, 0);
    } else if (how == 1) {
        panel_windows(panel, image, first, 5, panels, g, 1, 0, 0, 0);
    } else if (how == 2) {
        panel_windows(panel, image, first, 5, panels, g, 2, 0, 0, 0);
    } else if (how == 3) {
        panel_windows(panel, image, first, 5, panels, g, 3, 0, 0, 0);
    } else {
        panel_windows(panel, image, first, 5, panels, g, 4, 0, 0, 0);
    }
}
