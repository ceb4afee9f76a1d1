/* Sixteen accumulators leave no registers for loads ahead of their use. */
#pragma GCC optimize("no-schedule-insns")
#include "quads.h"

#include "quad_lines.h"
#include "scaled_sums.h"

/* The four bytes of a quad are neighbours in a row of the output: pixels of one channel, channels of a pixel, or some of
 * each. Rows of the image are in scratch, with padding. Each lane has different words (of another row, of later
 * columns, or of the next group), so a register of a line is a word for each lane.
 *
 * The bytes are not shifted. Instead, each byte of the quad has weights that are shifted to the start of its window, in all
 * words of the quad's windows; other weights are zero. After a period of columns this repeats, some words later. For one
 * channel and windows of three columns:
 *
 *              c0 c1 c2 c3 | c4 c5 c6 c7        words only for bytes 0 and 1: head (none)
 *     byte 0   w0 w1 w2    |                    words for all:                full (the first)
 *     byte 1      w0 w1 w2 |                    words only for bytes 2 and 3: tail (the second)
 *     byte 2         w0 w1 | w2
 *     byte 3            w0 | w1 w2
 *
 * A quad of four periods is computed at a time, 16 accumulators: a word of weights is loaded once for four of them, a word
 * of a line once for all bytes of its quad.
 *
 *   weights  [group or pair of groups][quad][row of the window][weight_words][byte] registers
 *   params   [group or pair of groups][quad][byte][3] registers: bias (zero points folded in), multiplier, rounder, with
 *            marks in the first two rounders of a quad (packing.py)
 *   quads    [quad][4]: the word of a line at which a quad begins; words of head, full and tail
 */
enum { W = RVP_WORD_BYTES, AT_ONCE = 4 /* periods */ };

/* Accumulators of a byte of the quad, or words of a line: of neighbouring periods. */
struct words {
    rvp_word at[AT_ONCE];
};

struct sums {
    struct words byte[4];
};

/* A quad's constants. */
struct quad {
    const int8_t *weights, *params;
    int head, full, tail;      /* bytes of weights for a row of the window */
    int row_bytes, rows_bytes; /* of all weights of a row, and of the window's rows */
    int row_step;              /* bytes from a line of the window to the next */
    int period_step;           /* bytes of a line from one period to the next */
    enum rounding rounding;
};

/* Positions of outputs: bytes from one period to the next, and from one lane to the other. If lane 1 has no outputs, it writes
 * to lane 0's address, and lane 0 writes last.
 */
struct destination {
    int8_t *at;
    intptr_t step, lane_step;
    int row_step;     /* bytes of a row that a period has */
    int left, behind; /* bytes of the row from here on; how many fewer lane 1 has */
    int whole;        /* bytes that are written as whole words, in all lanes */
    rvp_word zero_point, lowest, highest, flip;
    int clips;        /* whether bounds and flip change anything */
};

/* Hides the pointer from the compiler, which then does not keep loaded values: there are no registers for them. */
RVP_INLINE const int8_t *anew(const int8_t *p)
{
    __asm__("" : "+r"(p));
    return p;
}

/* Adds the products of a word of a line with bytes `first` to `last` of the quad. */
RVP_INLINE void add_word(struct sums *a, const int8_t *x, int step, const int8_t *w, int first, int last, int count)
{
    struct words line;
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        line.at[i] = rvp_load(x + i * step);
    }
#pragma GCC unroll 4
    for (int byte = first; byte <= last; byte++) {
        const rvp_word weights = rvp_load(w + byte * W);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            a->byte[byte].at[i] = rvp_smaqa(a->byte[byte].at[i], line.at[i], weights);
        }
    }
}

/* Constants of a function: words of a period, and full words and tail words of all quads, without head; 0: read from the
 * quad.
 */
struct shape {
    int period, full, tail;
};

/* Adds all rows of the window of a quad whose shape is known. */
RVP_INLINE void add_known(struct sums *a, const int8_t *line, const struct quad *q, int step, int count, struct shape s)
{
    const int8_t *w = q->weights, *const end = w + q->rows_bytes;
    do {
#pragma GCC unroll 2
        for (int word = 0; word < s.full; word++) {
            add_word(a, line + word * W, step, w + word * 4 * W, 0, 3, count);
        }
        if (s.tail > 0) {
            add_word(a, line + s.full * W, step, w + s.full * 4 * W, 2, 3, count);
        }
        w = anew(w + (s.full + s.tail) * 4 * W);
        line = anew(line + q->row_step);
    } while (w != end);
}

/* Adds all words of a kind, for all rows of the window. */
RVP_INLINE void add_rows(struct sums *a, const int8_t *line, const int8_t *w, const struct quad *q, int step, int bytes,
                         int first, int last, int count)
{
    const int8_t *const end = w + q->rows_bytes;
    do {
        const int8_t *const row_end = w + bytes;
        const int8_t *x = line;
        do {
            add_word(a, x, step, w, first, last, count);
            x = anew(x + W);
            w = anew(w + 4 * W);
        } while (w != row_end);
        w += q->row_bytes - bytes;
        line = anew(line + q->row_step);
    } while (w != end);
}

/* The remaining bytes of the row in a lane. */
static void store_left(int8_t *out, rvp_word bytes, int left)
{
    if (left >= 4) {
        if ((uintptr_t)out % 4 == 0) {
            rvp_store_lane(out, bytes);
            return;
        }
        out[0] = (int8_t)bytes;
        out[1] = (int8_t)(bytes >> 8);
        out[2] = (int8_t)(bytes >> 16);
        out[3] = (int8_t)(bytes >> 24);
        return;
    }
    for (; left > 0; left--) {
        *out++ = (int8_t)bytes;
        bytes >>= 8;
    }
}

/* For bytes that are not whole words. */
static void store_some(struct words bytes, int8_t *out, const struct destination *d, int left, int count)
{
    for (int i = 0; i < count; i++) {
        if (RVP_LANES == 2) {
            store_left(out + d->lane_step, bytes.at[i] >> (8 * W / 2), left - d->behind);
        }
        store_left(out, bytes.at[i], left);
        left -= d->row_step;
        out += d->step;
    }
}

/* Requantizes the sums and writes them, `left` and `whole` bytes at `out`. */
RVP_INLINE void write_sums(const struct sums *a, const int8_t *params, int8_t *out, const struct destination *d, int left,
                           int whole, int count, enum rounding rounding)
{
    struct sums y;
#pragma GCC unroll 4
    for (int byte = 0; byte < 4; byte++) {
        const rvp_word multiplier = rvp_load(params + (3 * byte + 1) * W);
        rvp_word rounder = rvp_load(params + (3 * byte + 2) * W);
        if (rounding != SHORT && byte < 2) {
            rounder = without_mark(rounder);
        }
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            y.byte[byte].at[i] = scale_sum(a->byte[byte].at[i], multiplier, rounder, rounding);
        }
    }
    struct words bytes = {{0}};
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        bytes.at[i] = narrow_sums(y.byte[0].at[i], y.byte[1].at[i], y.byte[2].at[i], y.byte[3].at[i], d->zero_point);
    }
    if (d->clips) {
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            bytes.at[i] = rvp_smin8(rvp_smax8(bytes.at[i], d->lowest), d->highest) ^ d->flip;
        }
    }
    if (whole < (count - 1) * d->row_step + 4) {
        store_some(bytes, out, d, left, count);
        return;
    }
    const intptr_t step = d->step, lane_step = d->lane_step;
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        if (RVP_LANES == 2) {
            rvp_store_lane(out + lane_step, bytes.at[i] >> (8 * W / 2));
        }
        rvp_store_lane(out, bytes.at[i]);
        out += step;
    }
}

/* Adds the words of head, full and tail. */
RVP_INLINE void add_kinds(struct sums *a, const int8_t *from, const struct quad *q, int step, int count)
{
    const int8_t *w = q->weights;
    if (q->head > 0) {
        add_rows(a, from, w, q, step, q->head, 0, 1, count);
        from = anew(from + q->head / 4);
        w += q->head;
    }
    if (q->full > 0) {
        add_rows(a, from, w, q, step, q->full, 0, 3, count);
        from = anew(from + q->full / 4);
        w += q->full;
    }
    if (q->tail > 0) {
        add_rows(a, from, w, q, step, q->tail, 2, 3, count);
    }
}

/* A quad of `count` periods. */
RVP_INLINE void outputs(const int8_t *from, const struct quad *q, int8_t *out, const struct destination *d, int left,
                        int whole, int count, struct shape s)
{
    const int step = s.period > 0 ? s.period * W : q->period_step;
    struct sums a;
#pragma GCC unroll 4
    for (int byte = 0; byte < 4; byte++) {
        const rvp_word bias = rvp_load(q->params + 3 * byte * W);
        a.byte[byte] = (struct words){{bias, bias, bias, bias}};
    }
    if (s.full > 0) {
        add_known(&a, from, q, step, count, s);
    } else {
        add_kinds(&a, from, q, step, count);
    }
    if (q->rounding == SHORT) {
        write_sums(&a, q->params, out, d, left, whole, count, SHORT);
    } else if (q->rounding == WIDE) {
        write_sums(&a, q->params, out, d, left, whole, count, WIDE);
    } else {
        write_sums(&a, q->params, out, d, left, whole, count, EXACT);
    }
}

typedef void row_kernel(const int8_t *from, const struct quad *q, const struct destination *d, int periods);

/* A quad of all periods of a row. */
RVP_INLINE void one_row(const int8_t *from, const struct quad *q, const struct destination *d, int periods,
                        struct shape s)
{
    const int step = s.period > 0 ? s.period * W : q->period_step;
    int8_t *out = d->at;
    int left = d->left, whole = d->whole;
    for (; periods >= AT_ONCE; periods -= AT_ONCE) {
        outputs(from, q, out, d, left, whole, AT_ONCE, s);
        from += AT_ONCE * step;
        out += AT_ONCE * d->step;
        left -= AT_ONCE * d->row_step;
        whole -= AT_ONCE * d->row_step;
    }
    if (periods == 3) {
        outputs(from, q, out, d, left, whole, 3, s);
    } else if (periods == 2) {
        outputs(from, q, out, d, left, whole, 2, s);
    } else if (periods == 1) {
        outputs(from, q, out, d, left, whole, 1, s);
    }
}

/* A quad of `rows` output rows, from row `row` on for lane 0. */
static void quad_of_rows(const int8_t *lines, const struct quad *q, struct destination *d, int8_t *out, int number, int row,
                         int rows, int has_group, const struct rvp_quads *g, row_kernel *kernel)
{
    const int byte = 4 * number, row_bytes = g->out_columns * g->out_channels;
    const intptr_t lane_step = g->lane_rows * row_bytes + g->lane_columns * g->out_channels + g->lane_groups * g->units;
    int8_t *to = out + row * row_bytes + byte / g->units * g->out_channels + byte % g->units;
    d->left = g->out_columns * g->units - byte;
    for (int end = row + rows; row < end; row++) {
        const int both = RVP_LANES == 2 && has_group && row + g->lane_rows < g->out_rows;
        d->at = to;
        d->behind = both ? g->lane_columns * g->units : 0;
        d->lane_step = both ? lane_step : 0;
        d->whole = d->left - d->behind;
        if ((((uintptr_t)to | (uintptr_t)d->step | (uintptr_t)d->lane_step) & 3) != 0) {
            d->whole = 0;
        }
        kernel(lines, q, d, g->periods);
        lines += g->row_stride * g->line_words * W;
        to += row_bytes;
    }
}

RVP_INLINE struct destination destination_of(const struct rvp_quads *g)
{
    return (struct destination){
        .step = g->period * g->out_channels,
        .row_step = g->period * g->units,
        .zero_point = rvp_splat16((int8_t)g->clip),
        .lowest = rvp_splat8(g->clip >> 8),
        .highest = rvp_splat8(g->clip >> 16),
        .flip = rvp_splat8(g->clip >> 24),
        .clips = ((uint32_t)g->clip >> 8) != 0x007f80,
    };
}

static void convolve(const int8_t *x, const int8_t *weights, const int8_t *params, const int32_t *quads, int8_t *out,
                     int8_t *scratch, const struct rvp_quads *g, row_kernel *kernel)
{
    struct destination d = destination_of(g);
    const int rows = RVP_LANES == 2 && g->lane_rows > 0 ? g->lane_rows : g->out_rows;
    struct quad q = {.row_bytes = g->weight_words * 4 * W,
                     .rows_bytes = g->kernel_rows * g->weight_words * 4 * W,
                     .row_step = g->row_dilation * g->line_words * W,
                     .period_step = g->period_words * W};
    const int groups = RVP_LANES == 2 && g->lane_groups > 0 ? 2 : 1;
    for (int group = 0; group < g->groups; group += groups) {
        for (int row = 0; row < rows; row += g->band) {
            const int band = smaller(g->band, rows - row);
            const int lines = (band - 1) * g->row_stride + (g->kernel_rows - 1) * g->row_dilation + 1;
            fill_lines(x, scratch, group, row * g->row_stride - g->top, lines, g);
            q.weights = weights;
            q.params = params;
            for (int number = 0; number < g->quads; number++) {
                const int32_t *const words = quads + 4 * number;
                q.head = words[1] * 4 * W;
                q.full = words[2] * 4 * W;
                q.tail = words[3] * 4 * W;
                q.rounding = rounding_of(rvp_load(q.params + 2 * W), rvp_load(q.params + 5 * W));
                quad_of_rows(scratch + words[0] * W, &q, &d, out, number, row, band, group + groups <= g->groups, g,
                             kernel);
                q.weights += q.rows_bytes;
                q.params += 12 * W;
            }
        }
        weights += g->quads * q.rows_bytes;
        params += g->quads * 12 * W;
        out += groups * g->units;
    }
}

/* The kernel of rows of a shape, and the function of a layer that uses it. */
#define QUADS(name, period, full, tail)                                                                                \
    static void row_##name(const int8_t *from, const struct quad *q, const struct destination *d, int periods)          \
    {                                                                                                                  \
        one_row(from, q, d, periods, (struct shape){period, full, tail});                                              \
    }                                                                                                                  \
    void rvp_quads_##name(const void *x, const int8_t *weights, const int32_t *params, const int32_t *quads, void *out, \
                          int8_t *scratch, const int32_t *layer)                                                       \
    {                                                                                                                  \
        convolve(x, weights, (const int8_t *)params, quads, out, scratch, (const struct rvp_quads *)layer, row_##name); \
    }

QUADS(p1, 1, 0, 0)
QUADS(p2, 2, 0, 0)
QUADS(p3, 3, 0, 0)
QUADS(pn, 0, 0, 0)
QUADS(k3, 1, 1, 1)
QUADS(k5, 1, 2, 0)
