/* Strips of four output columns and all rows of one group of channels: loads them from an NHWC image and stores results to one.
 *
 * Columns are transposed, so that four neighbouring columns of one channel are in one 32-bit lane. The including file provides the
 * computation between load and store.
 */
#pragma once

#include "depthwise.h"
#include "depthwise_pixels.h"

RVP_INLINE void fill_words(int8_t *to, int words, rvp_word value)
{
    for (; words > 0; words--) {
        rvp_store(to, value);
        to += W;
    }
}

/* Fills the rows of a strip that lie above and below the image. */
RVP_INLINE void fill_outside(int8_t *strip, int row_words, int top, int inside, int rows, rvp_word fill)
{
    fill_words(strip, top * row_words, fill);
    fill_words(strip + (top + inside) * row_words * W, (rows - top - inside) * row_words, fill);
}

/* The channels of a group: a register of channels at aligned addresses, a register at any address, or fewer channels, which are
 * all of the layer.
 */
enum group { REGISTERS, PARTS, FEW_CHANNELS };

/* In groups of up to four channels (RV64), the lower lanes have one half of the strips and the upper lanes the other half. The
 * halves are loaded one after the other; `upper` is 1 for the upper lanes.
 */
RVP_INLINE void bring_lanes(const struct columns *c, int count, int8_t *to, int apart, int8_t *also, const struct pixels *v,
                            enum how how, int upper)
{
    struct columns at = *c;
    to += 4 * upper;
    also += also == NULL ? 0 : 4 * upper;
    for (; count > 0; count--) {
        rvp_word x[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            x[i] = how == LANES ? rvp_load_lane(at.at[i]) : load_pixel(at.at[i], v, how);
            at.at[i] += at.step[i];
        }
        transpose(&x[0], &x[1], &x[2], &x[3]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            rvp_store_lane(to + i * apart, x[i]);
            if (also != NULL) {
                rvp_store_lane(also + i * apart, x[i]);
            }
        }
        to += 4 * apart;
        also += also == NULL ? 0 : 4 * apart;
    }
}

static void bring_half(const struct columns *c, int count, int8_t *to, int apart, int8_t *also, const struct pixels *v,
                       int upper)
{
    if (v->how == LANES) {
        bring_lanes(c, count, to, apart, also, v, LANES, upper);
    } else if (v->bytes == 1) {
        bring_lanes(c, count, to, apart, also, &(struct pixels){.bytes = 1}, FEW, upper);
    } else if (v->bytes == 2) {
        bring_lanes(c, count, to, apart, also, &(struct pixels){.bytes = 2}, FEW, upper);
    } else if (v->bytes == 3) {
        bring_lanes(c, count, to, apart, also, &(struct pixels){.bytes = 3}, FEW, upper);
    } else {
        bring_lanes(c, count, to, apart, also, v, BYTES, upper);
    }
}

/* Results of one lane to the image; `shift` is 32 for the upper one. */
RVP_INLINE void write_lane(const struct columns *c, int count, const int8_t *from, const struct bounds *bounds, int bytes,
                           int shift, int aligned)
{
    struct columns at = *c;
    for (; count > 0; count--) {
        rvp_word x[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            x[i] = rvp_load(from + i * W) >> shift;
            if (bounds->needed) {
                x[i] = clamp(x[i], bounds);
            }
        }
        transpose(&x[0], &x[1], &x[2], &x[3]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            if (aligned) {
                rvp_store_lane(at.at[i], x[i]);
            } else {
                store_few(at.at[i], x[i], bytes);
            }
            at.at[i] += at.step[i];
        }
        from += 4 * W;
    }
}

static void write_half(const struct columns *c, int count, const int8_t *from, const struct bounds *bounds,
                       const struct pixels *v, int shift)
{
    if (v->how == LANES) {
        write_lane(c, count, from, bounds, 4, shift, 1);
    } else if (v->bytes == 1) {
        write_lane(c, count, from, bounds, 1, shift, 0);
    } else if (v->bytes == 2) {
        write_lane(c, count, from, bounds, 2, shift, 0);
    } else if (v->bytes == 3) {
        write_lane(c, count, from, bounds, 3, shift, 0);
    } else {
        write_lane(c, count, from, bounds, 4, shift, 0);
    }
}

/* Where a layer's strips are and how far they are filled. Two strips are used alternately, because neighbours share
 * columns: the last word of a row is the first word of the next strip's row.
 */
struct strips {
    int8_t *outside; /* for columns outside of the image: one register to read, one to write */
    int8_t *results;
    int8_t *strip, *next;
    int column;      /* column of the image: the first of the last four that were loaded */
    int inside;      /* rows of the image in a strip */
    struct pixels in, out;
    struct bounds bounds;
};

static void bring_parts(const struct columns *c, int count, int8_t *to, int apart, int8_t *also, const struct pixels *v)
{
    if (RVP_LANES == 2 && v->how == LANES) {
        bring_in(c, count, to, 4 * apart, apart, also, 0, v, LANES);
    } else {
        bring_in(c, count, to, 4 * apart, apart, also, 0, v, BYTES);
    }
}

static void bring_few(const struct columns *c, int count, int8_t *to, int apart, int8_t *also, const struct pixels *v)
{
    if (v->bytes == 1) {
        bring_in(c, count, to, 4 * apart, apart, also, 0, &(struct pixels){.bytes = 1}, FEW);
    } else if (v->bytes == 2) {
        bring_in(c, count, to, 4 * apart, apart, also, 0, &(struct pixels){.bytes = 2}, FEW);
    } else if (v->bytes == 3) {
        bring_in(c, count, to, 4 * apart, apart, also, 0, &(struct pixels){.bytes = 3}, FEW);
    } else {
        bring_parts(c, count, to, apart, also, v);
    }
}

RVP_INLINE void write_channels(const struct columns *c, int count, const int8_t *from, const struct bounds *b,
                               const struct pixels *v)
{
    if (RVP_LANES == 2 && v->how == LANES) {
        write_lanes(c, count, from, b, v);
    } else {
        write_few(c, count, from, b, v);
    }
}

static void write_parts(const struct columns *c, int count, const int8_t *from, const struct bounds *b,
                        const struct pixels *v)
{
    if (RVP_LANES == 2 && v->how == LANES) {
        write_lanes(c, count, from, b, v);
    } else {
        write_bytes(c, count, from, b, v);
    }
}

RVP_INLINE void bring_strip(const struct strips *s, const int8_t *x, const struct rvp_depthwise_geometry *g, int stride,
                            enum group group, int8_t *to, int8_t *also)
{
    const int apart = (1 + stride) * W;
    const struct columns c =
        columns_at((int8_t *)x, s->column, g->columns, g->column_step, g->row_step, s->outside);
    if (group == REGISTERS) {
        bring_in(&c, s->inside, to, 4 * apart, apart, also, 0, &s->in, WHOLE);
    } else if (group == PARTS) {
        bring_parts(&c, s->inside, to, apart, also, &s->in);
    } else if (RVP_LANES == 2 && g->half > 0) {
        const struct columns upper = columns_at((int8_t *)x, s->column + g->half * stride, g->columns, g->column_step,
                                                g->row_step, s->outside);
        bring_half(&c, s->inside, to, apart, also, &s->in, 0);
        bring_half(&upper, s->inside, to, apart, also, &s->in, 1);
    } else {
        bring_few(&c, s->inside, to, apart, also, &s->in);
    }
}

/* Fills the padding above and below the image in both strips, and the first four columns of the first strip. `rows`: of a strip.
 * If there is one strip only, the first words of its neighbour lie over its last words, which have the same values.
 */
RVP_INLINE struct strips first_strip(const int8_t *x, int8_t *scratch, const struct rvp_depthwise_geometry *g,
                                     int stride, int rows, int out_columns, const int8_t *out, enum group group)
{
    const int row_words = 4 * (1 + stride);
    const rvp_word fill = rvp_splat8(g->fill);
    struct strips s = {.outside = scratch, .results = scratch + 2 * W, .column = -g->left, .bounds = bounds_of(g->clip)};
    if (group != REGISTERS) {
        s.in = pixels_of(x, g->row_step | g->column_step, g->channels);
        s.out = pixels_of(out, g->out_row_step | g->out_column_step, g->channels);
    }
    s.inside = g->rows < rows - g->top ? g->rows : rows - g->top;
    s.strip = s.results + g->out_rows * 4 * W;
    s.next = s.strip + (out_columns > 4 ? rows * row_words : stride) * W;
    rvp_store(s.outside, fill);
    fill_outside(s.strip, row_words, g->top, s.inside, rows, fill);
    fill_outside(s.next, row_words, g->top, s.inside, rows, fill);
    bring_strip(&s, x, g, stride, group, s.strip + g->top * row_words * W, NULL);
    return s;
}

/* The rest of the strip's columns; the last four are the first of the next strip. `last`: column of the image that an
 * output needs.
 */
RVP_INLINE void complete_strip(struct strips *s, const int8_t *x, const struct rvp_depthwise_geometry *g, int stride,
                               enum group group, int last)
{
    const int skip = g->top * 4 * (1 + stride) * W;
    s->column += 4;
    if (stride == 2) {
        bring_strip(s, x, g, stride, group, s->strip + skip + W, NULL);
        s->column += 4;
    }
    if (s->column <= last) {
        bring_strip(s, x, g, stride, group, s->strip + skip + stride * W, s->next + skip);
    }
}

/* Writes the results of the four columns from `out_column` on, and goes on to the next strip. */
RVP_INLINE void finish_strip(struct strips *s, int8_t *out, const struct rvp_depthwise_geometry *g, enum group group,
                             int out_column)
{
    const struct columns c =
        columns_at(out, out_column, g->out_columns, g->out_column_step, g->out_row_step, s->outside + W);
    if (group == REGISTERS) {
        write_out(&c, g->out_rows, s->results, &s->bounds, &s->out, WHOLE);
    } else if (group == PARTS) {
        write_parts(&c, g->out_rows, s->results, &s->bounds, &s->out);
    } else if (RVP_LANES == 2 && g->half > 0) {
        const struct columns upper = columns_at(out, out_column + g->half, g->out_columns, g->out_column_step,
                                                g->out_row_step, s->outside + W);
        write_half(&c, g->out_rows, s->results, &s->bounds, &s->out, 0);
        write_half(&upper, g->out_rows, s->results, &s->bounds, &s->out, W * 4);
    } else {
        write_channels(&c, g->out_rows, s->results, &s->bounds, &s->out);
    }
    int8_t *const done = s->strip;
    s->strip = s->next;
    s->next = done;
}
