/* Lines of the input of a depthwise convolution: groups rows and columns by dilation, transposes them into scratch, and writes
 * results back to the image.
 */
#pragma once

#include "depthwise_pixels.h"
#include "depthwise_window.h"

/* Rows or columns of a layer without dilation, or of one of the images into which a dilated layer is split. */
struct axis {
    int first, count; /* of the input: where the class begins, and its size */
    int before;       /* padding */
    int out_count;
};

RVP_INLINE struct axis class_of(int number, int dilation, int count, int before, int out_count)
{
    const int start = number - before; /* of the windows of the class's first output */
    const int turns = start >= 0 ? start / dilation : -((dilation - 1 - start) / dilation);
    const int first = start - turns * dilation;
    return (struct axis){first, (count - first + dilation - 1) / dilation, -turns,
                         (out_count - number + dilation - 1) / dilation};
}

/* The parts of scratch. */
struct scratch {
    int8_t *outside; /* for padding: one register to read, one to write */
    int8_t *masks;
    int8_t *results; /* of a band */
    int8_t *lines;
};

/* Lines in scratch: how far apart they and their words are. */
struct lines {
    int count, words;
    int line_step, word_step;
};

RVP_INLINE int smaller(int a, int b)
{
    return a < b ? a : b;
}

RVP_INLINE int larger(int a, int b)
{
    return a > b ? a : b;
}

static void bring_whole(const struct columns *c, int count, int8_t *to, int to_step, const struct pixels *v)
{
    bring_in(c, count, to, to_step, W, NULL, v->flip, v, WHOLE);
}

static void bring_lanes(const struct columns *c, int count, int8_t *to, int to_step, const struct pixels *v)
{
    bring_in(c, count, to, to_step, W, NULL, v->flip, v, LANES);
}

static void bring_bytes(const struct columns *c, int count, int8_t *to, int to_step, const struct pixels *v)
{
    bring_in(c, count, to, to_step, W, NULL, v->flip, v, BYTES);
}

static void bring_repeated(const struct columns *c, int count, int8_t *to, int to_step, const struct pixels *v)
{
    bring_in(c, count, to, to_step, W, NULL, v->flip, v, REPEATED);
}

static void bring_one_repeated(const struct columns *c, int count, int8_t *to, int to_step, const struct pixels *v)
{
    bring_in(c, count, to, to_step, W, NULL, v->flip, v, ONE_REPEATED);
}

static void bring_few(const struct columns *c, int count, int8_t *to, int to_step, const struct pixels *v)
{
    bring_in(c, count, to, to_step, W, NULL, v->flip, v, FEW);
}

RVP_INLINE void bring(const struct columns *c, int count, int8_t *to, int to_step, const struct pixels *v)
{
    if (v->how == WHOLE) {
        bring_whole(c, count, to, to_step, v);
    } else if (RVP_LANES == 2 && v->how == LANES) {
        bring_lanes(c, count, to, to_step, v);
    } else if (v->how == REPEATED) {
        bring_repeated(c, count, to, to_step, v);
    } else if (v->how == ONE_REPEATED) {
        bring_one_repeated(c, count, to, to_step, v);
    } else if (v->bytes < 4) {
        bring_few(c, count, to, to_step, v);
    } else {
        bring_bytes(c, count, to, to_step, v);
    }
}

/* The lines of a band. Its first row is row `row` of the class. */
static void fill_lines(const int8_t *image, const struct scratch *s, const struct rvp_depthwise_window *g,
                       const struct axis *rows, const struct axis *columns, int row, const struct lines *l,
                       const struct pixels *v)
{
    const int row_step = g->row_step * g->row_dilation, column_step = g->column_step * g->column_dilation;
    const int above = smaller(larger(-row, 0), l->count);
    const int inside = larger(smaller(l->count, rows->count - row) - above, 0);
    const struct columns nowhere = columns_at(s->outside, 0, 0, 0, 0, s->outside);
    for (int line = 0; line < l->count; line++) {
        if (line == above) {
            line += inside;
            if (line >= l->count) {
                break;
            }
        }
        bring(&nowhere, l->words, s->lines + line * l->line_step, l->word_step, v);
    }
    int8_t *const first = (int8_t *)image + (row + above) * row_step;
    int8_t *const to = s->lines + above * l->line_step;
    int word = 0;
    while (word < l->words) {
        const int column = word * 4 - columns->before;
        /* Words whose columns all lie inside, one after the other */
        const int whole = column < 0 ? 0 : smaller((columns->count - column) >> 2, l->words - word);
        if (whole > inside) {
            for (int line = 0; line < inside; line++) {
                const struct columns c =
                    columns_at(first + line * row_step, column, columns->count, column_step, 4 * column_step, s->outside);
                bring(&c, whole, to + line * l->line_step + word * l->word_step, l->word_step, v);
            }
            word += whole;
        } else {
            const struct columns c = columns_at(first, column, columns->count, column_step, row_step, s->outside);
            bring(&c, inside, to + word * l->word_step, l->line_step, v);
            word++;
        }
    }
}

/* Results of `count` words of outputs: of a row of the output, or of one below each other. */
static void write_run(int8_t *out, const int8_t *results, const struct scratch *s, const struct rvp_depthwise_window *g,
                      int columns, int column, int count, const struct bounds *bounds, const struct pixels *v)
{
    const int column_step = g->out_column_step * g->column_dilation;
    int8_t *const aside = s->outside + W;
    if (g->along_rows) {
        const struct columns c =
            columns_at(out, column, columns, column_step, g->out_row_step * g->row_dilation, aside);
        write_pixels(&c, count, results, bounds, v);
        return;
    }
    const int whole = columns / 4;
    const struct columns c = columns_at(out, 0, columns, column_step, 4 * column_step, aside);
    write_pixels(&c, whole, results, bounds, v);
    if (whole < count) {
        const struct columns last = columns_at(out, 4 * whole, columns, column_step, 0, aside);
        write_pixels(&last, 1, results + whole * 4 * W, bounds, v);
    }
}
