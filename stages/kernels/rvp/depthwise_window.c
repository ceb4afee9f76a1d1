/* Sixteen accumulators leave no registers for loads ahead of their use. */
#pragma GCC optimize("no-schedule-insns")
#include "depthwise_window.h"

#include "depthwise_pixels.h"
#include "scaled_sums.h"

/* A group is 4 * RVP_LANES channels of the output; where these are no multiple of that, the last group begins earlier and
 * computes some again. Lines of the input lie transposed in scratch: four columns of a channel are in a lane, a word of a
 * line is four registers, channel j of the group in the lower lane of register j and channel j + 4 in the upper one
 * (RV64). Rows and columns of a dilated layer fall into classes, as many as the dilation, that are images of their own without dilation.
 *
 * The bytes stay where they are: for each byte of a word at which a window can begin, there are weights shifted to it,
 * zero elsewhere, in as many words as the window reaches. Drawn for seven columns, words of weights in the order of params:
 *
 *   stride 1         c0 c1 c2 c3 | c4 c5 c6 c7 | c8 c9 ..
 *     output 0       w0 w1 w2 w3 | w4 w5 w6                      0, 4
 *     output 1          w0 w1 w2 | w3 w4 w5 w6                   1, 5
 *     output 2             w0 w1 | w2 w3 w4 w5 | w6              2, 6, 9
 *     output 3                w0 | w1 w2 w3 w4 | w5 w6           3, 7, 8
 *
 * Here two words are full: all four outputs reach them. The last word is for the tail, two outputs of the four.
 *
 *   stride 2         c0 c1 c2 c3 | c4 c5 c6 c7 | c8 c9 ca cb | cc ..
 *     output 0       w0 w1 w2 w3 | w4 w5 w6                            0, 2
 *     output 1             w0 w1 | w2 w3 w4 w5 | w6                    1, 3, 5
 *     output 2                     w0 w1 w2 w3 | w4 w5 w6              0, 2
 *     output 3                           w0 w1 | w2 w3 w4 w5 | w6      1, 3, 5
 *
 * These are three full pairs of words; word 4 would be zero (the window is odd: the even outputs lack the last one).
 *
 * Four words of outputs are computed at a time, 16 accumulators, next to each other in a row or below each other: a word
 * of weights is loaded once for four of them.
 *
 *   params   [group][j][3 + addends * kernel_rows * words] registers: bias (zero points folded in), multiplier, rounder,
 *            words of weights by row of the window; the second addends' rows at the end. Marks in the rounders of a group say how it is
 *            requantized (packing.py)
 */

enum { AT_ONCE = 4 }; /* words of outputs */

/* Runs of `count` words of outputs, whose windows begin `step` bytes apart; rows and words of lines are so many bytes
 * apart.
 */
struct runs {
    int runs, step;
    int count;
    int row_step, word_step;
};

typedef void outputs_kernel(const int8_t *from, int8_t *results, const int32_t *params, const struct runs *runs,
                            const struct rvp_depthwise_window *window);

/* What belongs to neighbouring words of outputs: accumulators of one column, or words of lines. */
struct words {
    rvp_word at[AT_ONCE];
};

/* What the functions are made for: columns of the window as above, `full` 0 where window->full_words tells. The tail is, with
 * stride 2, whether the window is odd.
 */
struct shape {
    int stride, full, tail;
};

RVP_INLINE struct words all_words(rvp_word value)
{
    return (struct words){{value, value, value, value}};
}

RVP_INLINE struct words load_words(const int8_t *from, int count, struct shape s)
{
    struct words x = all_words(0);
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        x.at[i] = rvp_load(from + i * s.stride * 4 * W);
    }
    return x;
}

RVP_INLINE void dot(struct words *sums, const struct words *x, rvp_word weights, int count)
{
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        sums->at[i] = rvp_smaqa(sums->at[i], x->at[i], weights);
    }
}

/* Accumulators of the four outputs of each word. */
struct sums {
    struct words column0, column1, column2, column3;
};

/* The pointer, of which the compiler knows nothing: it does not keep what it loaded for the next row of the window, for
 * which no registers are left.
 */
RVP_INLINE const int8_t *anew(const int8_t *p)
{
    __asm__("" : "+r"(p));
    return p;
}

/* Adds the products of a full word of a line. `w`: its words of weights, stride 1. */
RVP_INLINE void add_full_word(struct sums *a, const int8_t *from, const int8_t *w, int count, struct shape s)
{
    const struct words x = load_words(from, count, s);
    dot(&a->column0, &x, rvp_load(w), count);
    dot(&a->column1, &x, rvp_load(w + W), count);
    dot(&a->column2, &x, rvp_load(w + 2 * W), count);
    dot(&a->column3, &x, rvp_load(w + 3 * W), count);
}

/* Adds one row of the window, stride 1. `w`: its words of weights; returns the next row's. */
RVP_INLINE const int8_t *add_row_stride1(struct sums *a, const int8_t *from, const int8_t *w, int word_step, int full,
                                         int count, struct shape s)
{
    if (s.full > 0) {
        add_full_word(a, from, w, count, s);
        from = anew(from + word_step);
        if (s.full > 1) {
            add_full_word(a, from, w + 4 * W, count, s);
        }
        w += s.full * 4 * W;
    } else {
        do {
            add_full_word(a, from, w, count, s);
            from = anew(from + word_step);
            w += 4 * W;
        } while (--full > 0);
    }
    if (s.tail > 0) {
        const struct words x = load_words(from, count, s);
        dot(&a->column3, &x, rvp_load(w), count);
        if (s.tail > 1) {
            dot(&a->column2, &x, rvp_load(w + W), count);
        }
        if (s.tail > 2) {
            dot(&a->column1, &x, rvp_load(w + 2 * W), count);
        }
    }
    return w + s.tail * W;
}

/* The same with stride 2. */
RVP_INLINE const int8_t *add_row_stride2(struct sums *a, const int8_t *from, const int8_t *w, int word_step, int full,
                                         int count, struct shape s)
{
    rvp_word even = rvp_load(w), odd = rvp_load(w + W);
    struct words x = load_words(from, count, s);
    dot(&a->column0, &x, even, count);
    dot(&a->column1, &x, odd, count);
    w += 2 * W;
    while (--full > 0) {
        from = anew(from + word_step);
        x = load_words(from, count, s);
        dot(&a->column2, &x, even, count);
        dot(&a->column3, &x, odd, count);
        odd = rvp_load(w + W);
        dot(&a->column1, &x, odd, count);
        if (s.tail == 0 || s.full == 0) {
            even = rvp_load(w);
            dot(&a->column0, &x, even, count);
        }
        w += 2 * W;
    }
    x = load_words(anew(from + word_step), count, s);
    dot(&a->column3, &x, odd, count);
    if (s.tail == 0) {
        dot(&a->column2, &x, even, count);
    }
    return w;
}

/* The constants of one channel of each lane. */
struct channel {
    rvp_word bias, multiplier, rounder;
    const int8_t *weights, *end;
    int addend_bytes;    /* of weights */
    rvp_word zero_point; /* in every 16-bit lane */
    enum rounding rounding;
};

/* Requantizes the outputs and writes the four of a word side by side. */
RVP_INLINE void write_sums(int8_t *out, const struct sums *a, const struct channel *c, int count, enum rounding how)
{
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        const rvp_word first = scale_sum(a->column0.at[i], c->multiplier, c->rounder, how);
        const rvp_word second = scale_sum(a->column1.at[i], c->multiplier, c->rounder, how);
        const rvp_word third = scale_sum(a->column2.at[i], c->multiplier, c->rounder, how);
        const rvp_word fourth = scale_sum(a->column3.at[i], c->multiplier, c->rounder, how);
        rvp_store(out + i * 4 * W, narrow_sums(first, second, third, fourth, c->zero_point));
    }
}

/* `count` words of outputs whose windows begin at `from` and following words. */
RVP_INLINE void outputs(const int8_t *from, int8_t *out, const struct channel *c, int full, const struct runs *runs,
                        int count, struct shape s)
{
    const struct words bias = all_words(c->bias);
    struct sums a = {bias, bias, bias, bias};
    const int8_t *w = c->weights;
    do { /* once, or for both addends */
        const int8_t *const end = w + c->addend_bytes;
        const int8_t *row = from;
        do {
            row = anew(row);
            w = s.stride == 1 ? add_row_stride1(&a, row, w, runs->word_step, full, count, s)
                              : add_row_stride2(&a, row, w, runs->word_step, full, count, s);
            row += runs->row_step;
        } while (w != end);
    } while (w != c->end);
    if (c->rounding == SHORT) {
        write_sums(out, &a, c, count, SHORT);
    } else if (c->rounding == WIDE) {
        write_sums(out, &a, c, count, WIDE);
    } else {
        write_sums(out, &a, c, count, EXACT);
    }
}

/* All runs, for all channels of the group. */
RVP_INLINE void all_outputs(const int8_t *from, int8_t *results, const int32_t *params, const struct runs *runs,
                            const struct rvp_depthwise_window *g, struct shape s)
{
    const int8_t *record = (const int8_t *)params;
    const int full = s.full > 0 ? s.full : g->full_words;
    const int words = s.stride == 1 ? 4 * full + s.tail : 2 * full;
    struct channel c = {.zero_point = rvp_splat16((int8_t)g->clip)};
    c.addend_bytes = g->kernel_rows * words * W;
    c.rounding = rounding_of(rvp_load(record + 2 * W), rvp_load(record + (g->record + 2) * W));
    for (int j = 0; j < 4; j++) {
        c.bias = rvp_load(record);
        c.multiplier = rvp_load(record + W);
        c.rounder = without_mark(rvp_load(record + 2 * W));
        c.weights = record + 3 * W;
        c.end = c.weights + g->addends * c.addend_bytes;
        const int8_t *first = from + j * W;
        int8_t *to = results + j * W;
        for (int run = runs->runs; run > 0; run--) {
            const int8_t *x = first;
            int left = runs->count;
            for (; left >= AT_ONCE; left -= AT_ONCE) {
                outputs(x, to, &c, full, runs, 4, s);
                x += 4 * s.stride * 4 * W;
                to += 4 * 4 * W;
            }
            if (left == 3) {
                outputs(x, to, &c, full, runs, 3, s);
            } else if (left == 2) {
                outputs(x, to, &c, full, runs, 2, s);
            } else if (left == 1) {
                outputs(x, to, &c, full, runs, 1, s);
            }
            to += left * 4 * W;
            first += runs->step;
        }
        record = c.end;
    }
}

/* Rows or columns of a layer, or a class of those of a dilated one. */
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
    int8_t *outside; /* one register to read, one to write: what lies beside the image */
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
    } else {
        bring_bytes(c, count, to, to_step, v);
    }
}

/* The lines of a band, whose first is row `row` of the class. */
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

/* A group of channels of the rows and columns of a class. */
static void one_class(const int8_t *x, const int32_t *params, int8_t *out, const struct scratch *s,
                      const struct rvp_depthwise_window *g, const struct axis *rows, const struct axis *columns,
                      const struct pixels *in, const struct pixels *written, int stride, outputs_kernel *kernel)
{
    const struct bounds bounds = bounds_of(g->clip);
    const int out_words = (columns->out_count + 3) / 4;
    const int out_row_step = g->out_row_step * g->row_dilation;
    for (int out_row = 0; out_row < rows->out_count; out_row += g->band) {
        const int band = smaller(g->band, rows->out_count - out_row);
        struct lines l = {.count = (band - 1) * g->row_stride + g->kernel_rows,
                          .words = (out_words - 1) * stride + g->window_words};
        l.line_step = 4 * W * (g->along_rows ? 1 : l.words);
        l.word_step = 4 * W * (g->along_rows ? l.count : 1);
        fill_lines(x, s, g, rows, columns, out_row * g->row_stride - rows->before, &l, in);
        struct runs runs = {.row_step = l.line_step, .word_step = l.word_step};
        if (g->along_rows) {
            runs.runs = out_words;
            runs.step = stride * l.word_step;
            runs.count = band;
        } else {
            runs.runs = band;
            runs.step = g->row_stride * l.line_step;
            runs.count = out_words;
        }
        kernel(s->lines, s->results, params, &runs, g);
        int8_t *to = out + out_row * out_row_step;
        const int8_t *from = s->results;
        for (int run = 0; run < runs.runs; run++) {
            write_run(to, from, s, g, columns->out_count, 4 * run, runs.count, &bounds, written);
            from += runs.count * 4 * W;
            to += g->along_rows ? 0 : out_row_step;
        }
    }
}

/* Masks for the channels of the input that the group from `first` on is made of; how many they are. */
static int fill_masks(int8_t *masks, int first, int bytes, int multiplier)
{
    const int source = first / multiplier;
    int repeated = first - source * multiplier, sources = 0;
    rvp_word mask = 0;
    for (int i = 0; i < bytes; i++) {
        mask |= (rvp_word)1 << (8 * i);
        if (++repeated == multiplier || i + 1 == bytes) {
            rvp_store(masks + sources * W, mask);
            mask = 0;
            repeated = 0;
            sources++;
        }
    }
    return sources;
}

static void depthwise(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch,
                      const struct rvp_depthwise_window *g, int stride, outputs_kernel *kernel)
{
    enum { GROUP = 4 * RVP_LANES };
    struct scratch s = {.outside = scratch, .masks = scratch + 2 * W, .results = scratch + (2 + W) * W};
    const int out_words = (g->out_columns + 4 * g->column_dilation - 1) / (4 * g->column_dilation);
    s.lines = s.results + g->band * out_words * 4 * W;
    rvp_store(s.outside, rvp_splat8(g->fill));
    for (int channel = 0; channel < g->channels; channel += GROUP) {
        const int bytes = smaller(GROUP, g->channels);
        const int first = smaller(channel, g->channels - bytes); /* of the last group: earlier */
        const int source = first / g->multiplier;
        struct pixels in = pixels_of(x, g->channels, bytes);
        const struct pixels written = pixels_of(out, g->channels, bytes);
        in.flip = rvp_splat8(g->flip);
        if (g->multiplier > 1) {
            in.masks = s.masks;
            in.sources = fill_masks(s.masks, first, bytes, g->multiplier);
            in.mask = rvp_load(s.masks);
            in.how = in.sources == 1 ? ONE_REPEATED : REPEATED;
        }
        for (int i = 0; i < g->row_dilation && i < g->out_rows; i++) {
            const struct axis rows = class_of(i, g->row_dilation, g->rows, g->top, g->out_rows);
            for (int j = 0; j < g->column_dilation && j < g->out_columns; j++) {
                const struct axis columns = class_of(j, g->column_dilation, g->columns, g->left, g->out_columns);
                one_class(x + source + rows.first * g->row_step + columns.first * g->column_step, params,
                          out + first + i * g->out_row_step + j * g->out_column_step, &s, g, &rows, &columns, &in,
                          &written, stride, kernel);
            }
        }
        params += 4 * g->record * RVP_LANES;
    }
}

/* The kernel of runs, and the function of a layer that uses it. */
#define DEPTHWISE(name, stride, full, tail)                                                                         \
    static void outputs_##name(const int8_t *from, int8_t *results, const int32_t *params,                          \
                               const struct runs *runs, const struct rvp_depthwise_window *window)                 \
    {                                                                                                               \
        all_outputs(from, results, params, runs, window, (struct shape){stride, full, tail});                       \
    }                                                                                                               \
    void rvp_depthwise_##name(const void *x, const int32_t *params, void *out, int8_t *scratch,                     \
                              const int32_t *window)                                                                \
    {                                                                                                               \
        depthwise(x, params, out, scratch, (const struct rvp_depthwise_window *)window, stride, outputs_##name);    \
    }

DEPTHWISE(s1_k1, 1, 1, 0)
DEPTHWISE(s1_k2, 1, 1, 1)
DEPTHWISE(s1_k3, 1, 1, 2)
DEPTHWISE(s1_k4, 1, 1, 3)
DEPTHWISE(s1_k5, 1, 2, 0)
DEPTHWISE(s1_m0, 1, 0, 0)
DEPTHWISE(s1_m1, 1, 0, 1)
DEPTHWISE(s1_m2, 1, 0, 2)
DEPTHWISE(s1_m3, 1, 0, 3)
DEPTHWISE(s2_k2, 2, 1, 0)
DEPTHWISE(s2_k4, 2, 2, 1)
DEPTHWISE(s2_k6, 2, 2, 0)
DEPTHWISE(s2_m0, 2, 0, 0)
DEPTHWISE(s2_m1, 2, 0, 1)
