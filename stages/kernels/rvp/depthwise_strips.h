/* Strips of four output columns, all rows, of one group of channels: brought in from an NHWC image and out to one.
 *
 * Columns are transposed on the way, so that four neighbouring columns of one channel lie in one 32-bit lane. What is
 * computed between in and out is the includer's.
 */
#ifndef FIRMLINE_RVP_DEPTHWISE_STRIPS_H
#define FIRMLINE_RVP_DEPTHWISE_STRIPS_H

#include <stddef.h>

#include "depthwise.h"
#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };

/* Transposes the 4x4 bytes of each lane: byte i of word j becomes byte j of word i. */
RVP_INLINE void transpose(rvp_word *a, rvp_word *b, rvp_word *c, rvp_word *d)
{
    const rvp_word even = (rvp_word)0x00ff00ff00ff00ffu;
    const rvp_word ab02 = rvp_select_bits(even, *a, *b << 8), ab13 = rvp_select_bits(even, *a >> 8, *b);
    const rvp_word cd02 = rvp_select_bits(even, *c, *d << 8), cd13 = rvp_select_bits(even, *c >> 8, *d);
    *a = rvp_pkbb16(cd02, ab02);
    *b = rvp_pkbb16(cd13, ab13);
    *c = rvp_pktt16(cd02, ab02);
    *d = rvp_pktt16(cd13, ab13);
}

/* Four neighbouring columns of the image or the output: where each begins and how far it is to the next row. A column
 * outside has one word for all rows.
 */
struct columns {
    int8_t *at[4];
    int step[4];
};

RVP_INLINE struct columns columns_at(int8_t *first_row, int first, int count, int row_step, int column_step,
                                     int8_t *outside)
{
    struct columns c;
    for (int i = 0; i < 4; i++) {
        const int inside = first + i >= 0 && first + i < count;
        c.at[i] = inside ? first_row + (first + i) * column_step : outside;
        c.step[i] = inside ? row_step : 0;
    }
    return c;
}

/* Four columns, transposed, into a place of a strip and, if it is not NULL, a second place in another. `row_words`
 * registers hold one row of a strip, a quarter of them for each j.
 */
RVP_INLINE void fill_strip(const struct columns *c, int rows, int row_words, int8_t *to, int8_t *also)
{
    const int8_t *p0 = c->at[0], *p1 = c->at[1], *p2 = c->at[2], *p3 = c->at[3];
    const int s0 = c->step[0], s1 = c->step[1], s2 = c->step[2], s3 = c->step[3];
    const int step = row_words / 4 * W;
    for (; rows > 0; rows--) {
        rvp_word a = rvp_load(p0), b = rvp_load(p1), d = rvp_load(p2), e = rvp_load(p3);
        p0 += s0;
        p1 += s1;
        p2 += s2;
        p3 += s3;
        transpose(&a, &b, &d, &e);
        rvp_store(to, a);
        rvp_store(to + step, b);
        rvp_store(to + 2 * step, d);
        rvp_store(to + 3 * step, e);
        to += 4 * step;
        if (also != NULL) {
            rvp_store(also, a);
            rvp_store(also + step, b);
            rvp_store(also + 2 * step, d);
            rvp_store(also + 3 * step, e);
            also += 4 * step;
        }
    }
}

RVP_INLINE void write_columns(const struct columns *c, int rows, const int8_t *from, int clip, int clamps)
{
    int8_t *p0 = c->at[0], *p1 = c->at[1], *p2 = c->at[2], *p3 = c->at[3];
    const int s0 = c->step[0], s1 = c->step[1], s2 = c->step[2], s3 = c->step[3];
    const rvp_word lowest = rvp_splat8(clip >> 8), highest = rvp_splat8(clip >> 16), flip = rvp_splat8(clip >> 24);
    for (; rows > 0; rows--) {
        rvp_word a = rvp_load(from), b = rvp_load(from + W), d = rvp_load(from + 2 * W), e = rvp_load(from + 3 * W);
        from += 4 * W;
        if (clamps) {
            a = rvp_smin8(rvp_smax8(a, lowest), highest) ^ flip;
            b = rvp_smin8(rvp_smax8(b, lowest), highest) ^ flip;
            d = rvp_smin8(rvp_smax8(d, lowest), highest) ^ flip;
            e = rvp_smin8(rvp_smax8(e, lowest), highest) ^ flip;
        }
        transpose(&a, &b, &d, &e);
        rvp_store(p0, a);
        rvp_store(p1, b);
        rvp_store(p2, d);
        rvp_store(p3, e);
        p0 += s0;
        p1 += s1;
        p2 += s2;
        p3 += s3;
    }
}

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

/* Up to 4 * RVP_LANES bytes, `to_step` and `from_step` apart but for each fourth: in a strip the channels of a lane are in
 * registers that lie a step apart, those of the next lane four bytes further.
 */
RVP_INLINE void copy_pixel(int8_t *to, ptrdiff_t to_step, const int8_t *from, ptrdiff_t from_step, int channels)
{
    for (; channels >= 4; channels -= 4) {
        const int8_t a = from[0], b = from[from_step], c = from[2 * from_step], d = from[3 * from_step];
        to[0] = a;
        to[to_step] = b;
        to[2 * to_step] = c;
        to[3 * to_step] = d;
        from += 4;
        to += 4;
    }
    for (; channels > 0; channels--) {
        *to = *from;
        from += from_step;
        to += to_step;
    }
}

/* fill_strip for the first `channels` channels of pixels that are not aligned or too few for registers. */
static void fill_strip_bytes(const struct columns *c, int rows, int row_words, int8_t *to, int8_t *also, int channels)
{
    const ptrdiff_t step = row_words / 4 * W;
    for (int i = 0; i < 4; i++) {
        const int8_t *from = c->at[i];
        for (ptrdiff_t place = i; place < rows * 4 * step; place += 4 * step) {
            copy_pixel(to + place, step, from, 1, channels);
            if (also != NULL) {
                copy_pixel(also + place, step, from, 1, channels);
            }
            from += c->step[i];
        }
    }
}

/* write_columns for the same pixels. Clips the results in place. */
static void write_columns_bytes(const struct columns *c, int rows, int8_t *from, int clip, int clamps, int channels)
{
    const rvp_word lowest = rvp_splat8(clip >> 8), highest = rvp_splat8(clip >> 16), flip = rvp_splat8(clip >> 24);
    if (clamps) {
        for (int8_t *p = from; p != from + rows * 4 * W; p += W) {
            rvp_store(p, rvp_smin8(rvp_smax8(rvp_load(p), lowest), highest) ^ flip);
        }
    }
    for (int i = 0; i < 4; i++) {
        int8_t *to = c->at[i];
        for (const int8_t *p = from + i; p < from + rows * 4 * W; p += 4 * W) {
            copy_pixel(to, 1, p, W, channels);
            to += c->step[i];
        }
    }
}

/* Where a layer's strips are and how far they are filled. A strip and the next take turns, because they share columns:
 * the last word of a row is the first of the next strip's.
 */
struct strips {
    int8_t *outside; /* one register to read, one to write: columns beside the image */
    int8_t *results;
    int8_t *strip, *next;
    int column;      /* of the image: the first of the last four that were brought in */
    int inside;      /* rows of the image in a strip */
    int clamps;      /* whether the output's bounds or its type ask for more than saturation to int8 */
    int channels;    /* 0: whole registers, aligned; otherwise how many are moved byte by byte */
};

RVP_INLINE void bring_in(const struct strips *s, const int8_t *x, const struct rvp_depthwise_geometry *g, int stride,
                         int8_t *to, int8_t *also)
{
    const int row_words = 4 * (1 + stride);
    const struct columns c = columns_at((int8_t *)x, s->column, g->columns, g->row_step, g->column_step, s->outside);
    if (s->channels == 0) {
        fill_strip(&c, s->inside, row_words, to, also);
    } else {
        fill_strip_bytes(&c, s->inside, row_words, to, also, s->channels);
    }
}

/* Both strips with what lies above and below the image, the first with its first four columns. `rows`: of a strip. */
RVP_INLINE struct strips first_strip(const int8_t *x, int8_t *scratch, const struct rvp_depthwise_geometry *g,
                                     int stride, int rows, int channels)
{
    const int row_words = 4 * (1 + stride);
    const rvp_word fill = rvp_splat8(g->fill);
    struct strips s = {.outside = scratch, .results = scratch + 2 * W, .column = -g->left, .channels = channels};
    s.clamps = ((uint32_t)g->clip >> 8) != 0x007f80;
    s.inside = g->rows < rows - g->top ? g->rows : rows - g->top;
    s.strip = s.results + g->out_rows * 4 * W;
    s.next = s.strip + rows * row_words * W;
    rvp_store(s.outside, fill);
    fill_outside(s.strip, row_words, g->top, s.inside, rows, fill);
    fill_outside(s.next, row_words, g->top, s.inside, rows, fill);
    bring_in(&s, x, g, stride, s.strip + g->top * row_words * W, NULL);
    return s;
}

/* The rest of the strip's columns; the last four are the first of the next strip. `last`: column of the image that an
 * output needs.
 */
RVP_INLINE void complete_strip(struct strips *s, const int8_t *x, const struct rvp_depthwise_geometry *g, int stride,
                               int last)
{
    const int skip = g->top * 4 * (1 + stride) * W;
    s->column += 4;
    if (stride == 2) {
        bring_in(s, x, g, stride, s->strip + skip + W, NULL);
        s->column += 4;
    }
    if (s->column <= last) {
        bring_in(s, x, g, stride, s->strip + skip + stride * W, s->next + skip);
    }
}

/* Writes the results of the four columns from `out_column` on, and goes on to the next strip. */
RVP_INLINE void finish_strip(struct strips *s, int8_t *out, const struct rvp_depthwise_geometry *g, int out_column)
{
    const struct columns c = columns_at(out, out_column, g->out_columns, g->out_row_step, g->out_column_step,
                                        s->outside + W);
    if (s->channels == 0) {
        write_columns(&c, g->out_rows, s->results, g->clip, s->clamps);
    } else {
        write_columns_bytes(&c, g->out_rows, s->results, g->clip, s->clamps, s->channels);
    }
    int8_t *const done = s->strip;
    s->strip = s->next;
    s->next = done;
}

#endif
