#include "depthwise.h"

#include <stddef.h>

#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };

typedef void strip_kernel(const int8_t *strip, int8_t *out, int rows, const int32_t *params, int zero_point);

strip_kernel rvp_depthwise3x3_s1, rvp_depthwise3x3_s1_wide, rvp_depthwise3x3_s2, rvp_depthwise3x3_s2_wide;
strip_kernel rvp_depthwise3x3_s1u, rvp_depthwise3x3_s1u_wide, rvp_depthwise3x3_s2u, rvp_depthwise3x3_s2u_wide;
strip_kernel rvp_depthwise3x3_s1us, rvp_depthwise3x3_s1us_wide, rvp_depthwise3x3_s2us, rvp_depthwise3x3_s2us_wide;

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

static void fill_words(int8_t *to, int words, rvp_word value)
{
    for (; words > 0; words--) {
        rvp_store(to, value);
        to += W;
    }
}

/* Fills the rows of a strip that lie above and below the image. */
static void fill_outside(int8_t *strip, int row_words, int top, int inside, int rows, rvp_word fill)
{
    fill_words(strip, top * row_words, fill);
    fill_words(strip + (top + inside) * row_words * W, (rows - top - inside) * row_words, fill);
}

RVP_INLINE void depthwise(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch,
                          const struct rvp_depthwise_geometry *g, int stride, strip_kernel *kernel)
{
    const int row_words = 4 * (1 + stride);
    const int rows = (g->out_rows - 1) * stride + 3;
    const int inside = g->rows < rows - g->top ? g->rows : rows - g->top;
    const int clamps = ((uint32_t)g->clip >> 8) != 0x007f80;
    int8_t *const outside = scratch; /* one register to read, one to write: columns beside the image */
    int8_t *const results = scratch + 2 * W;
    int8_t *strip = results + g->out_rows * 4 * W;
    int8_t *next = strip + rows * row_words * W;
    const rvp_word fill = rvp_splat8(g->fill);

    rvp_store(outside, fill);
    fill_outside(strip, row_words, g->top, inside, rows, fill);
    fill_outside(next, row_words, g->top, inside, rows, fill);

    const int skip = g->top * row_words * W;
    int column = -g->left;
    struct columns c = columns_at((int8_t *)x, column, g->columns, g->row_step, g->column_step, outside);
    fill_strip(&c, inside, row_words, strip + skip, NULL);
    const int last = (g->out_columns - 1) * stride + 2 - g->left; /* column of the image that an output needs */
    for (int out_column = 0; out_column < g->out_columns; out_column += 4) {
        column += 4;
        c = columns_at((int8_t *)x, column, g->columns, g->row_step, g->column_step, outside);
        if (stride == 2) {
            fill_strip(&c, inside, row_words, strip + skip + W, NULL);
            column += 4;
            c = columns_at((int8_t *)x, column, g->columns, g->row_step, g->column_step, outside);
        }
        if (column <= last) {
            fill_strip(&c, inside, row_words, strip + skip + stride * W, next + skip);
        }
        kernel(strip, results, g->out_rows, params, (int8_t)g->clip);
        c = columns_at(out, out_column, g->out_columns, g->out_row_step, g->out_column_step, outside + W);
        write_columns(&c, g->out_rows, results, g->clip, clamps);

        int8_t *const done = strip;
        strip = next;
        next = done;
    }
}

static void depthwise_s1(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch, const int32_t *geometry,
                         strip_kernel *kernel)
{
    depthwise(x, params, out, scratch, (const struct rvp_depthwise_geometry *)geometry, 1, kernel);
}

static void depthwise_s2(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch, const int32_t *geometry,
                         strip_kernel *kernel)
{
    depthwise(x, params, out, scratch, (const struct rvp_depthwise_geometry *)geometry, 2, kernel);
}

/* The mark of a wide group, in the first rounder: see packing.py. */
static int is_wide(const int32_t *params)
{
    return params[6 * RVP_LANES - 1] < 0;
}

void rvp_depthwise_s1(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s1_wide : rvp_depthwise3x3_s1;
    depthwise_s1(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s2(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s2_wide : rvp_depthwise3x3_s2;
    depthwise_s2(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s1u(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s1u_wide : rvp_depthwise3x3_s1u;
    depthwise_s1(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s2u(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s2u_wide : rvp_depthwise3x3_s2u;
    depthwise_s2(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s1us(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s1us_wide : rvp_depthwise3x3_s1us;
    depthwise_s1(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s2us(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s2us_wide : rvp_depthwise3x3_s2us;
    depthwise_s2(x, params, out, scratch, geometry, kernel);
}
