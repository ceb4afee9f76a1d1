/* Sixteen accumulators leave no registers for loads ahead of their use. */
#pragma GCC optimize("no-schedule-insns")
#include "depthwise_window.h"

#include "depthwise_strips.h"

/* Strips hold four columns of a channel in a lane, two (stride 2: three) words a row. A window of five columns lies across
 * two words wherever it begins. The bytes stay where they are: for each byte of a word at which a window can begin, there
 * are weights shifted to it, zero elsewhere, in as many words as it reaches.
 *
 *   stride 1         c0 c1 c2 c3 | c4 c5 c6 c7           words of weights, in the order of params
 *     output 0       w0 w1 w2 w3 | w4                    0, 7
 *     output 1          w0 w1 w2 | w3 w4                 1, 6
 *     output 2             w0 w1 | w2 w3 w4              2, 5
 *     output 3                w0 | w1 w2 w3 w4           3, 4
 *
 *   stride 2         c0 c1 c2 c3 | c4 c5 c6 c7 | c8 c9 c10 c11
 *     output 0       w0 w1 w2 w3 | w4                    0, 3
 *     output 1             w0 w1 | w2 w3 w4              1, 2
 *     output 2                     w0 w1 w2 w3 | w4      0, 3
 *     output 3                           w0 w1 | w2 w3 w4  1, 2
 *
 * Narrower windows lack the last of these words: six are left of three columns and five of two (stride 2: three, two).
 *
 * Four rows of outputs are computed at a time, 16 accumulators: a word of weights is loaded once for four of them.
 *
 *   params   [j][3 + addends * kernel_rows * words] registers: bias (zero points folded in), multiplier, rounder, words
 *            of weights by row of the window; the second addends' rows at the end. Channel j of the group is in the
 *            lower lane and channel j + 4 in the upper one (RV64). The first rounder of a group that is requantized
 *            the wide way carries a mark (packing.py)
 */
typedef void strip_kernel(const int8_t *strip, int8_t *out, const int32_t *params,
                          const struct rvp_depthwise_window *window);

enum { ROWS = 4 }; /* of outputs at a time */

/* What belongs to neighbouring rows of outputs: accumulators of one column, or words of the strip. */
struct rows {
    rvp_word at[ROWS];
};

/* What the functions are made for. */
struct shape {
    int stride, columns, is_unsigned;
};

RVP_INLINE int words_of(struct shape s)
{
    return s.stride == 1 ? 3 + s.columns : s.columns == 5 ? 4 : s.columns;
}

RVP_INLINE int row_bytes(struct shape s)
{
    return 4 * (1 + s.stride) * W;
}

RVP_INLINE struct rows all_rows(rvp_word value)
{
    return (struct rows){{value, value, value, value}};
}

RVP_INLINE struct rows load_rows(const int8_t *from, int step, int count)
{
    struct rows x = all_rows(0);
#pragma GCC unroll 4
    for (int r = 0; r < count; r++) {
        x.at[r] = rvp_load(from + r * step);
    }
    return x;
}

RVP_INLINE void dot(struct rows *sums, const struct rows *x, rvp_word weights, int count, struct shape s)
{
#pragma GCC unroll 4
    for (int r = 0; r < count; r++) {
        sums->at[r] = s.is_unsigned ? rvp_smaqa_su(sums->at[r], weights, x->at[r])
                                    : rvp_smaqa(sums->at[r], x->at[r], weights);
    }
}

/* Accumulators of four neighbouring outputs of each row. */
struct sums {
    struct rows column0, column1, column2, column3;
};

/* The pointer, of which the compiler knows nothing: it does not keep what it loaded for the next row of the window, for
 * which no registers are left.
 */
RVP_INLINE const int8_t *anew(const int8_t *p)
{
    __asm__("" : "+r"(p));
    return p;
}

/* Adds one row of the window. `w`: its words of weights. */
RVP_INLINE void add_row(struct sums *a, const int8_t *from, const int8_t *w, int step, int count, struct shape s)
{
    struct rows x = load_rows(from, step, count);
    if (s.stride == 1) {
        dot(&a->column0, &x, rvp_load(w), count, s);
        dot(&a->column1, &x, rvp_load(w + W), count, s);
        dot(&a->column2, &x, rvp_load(w + 2 * W), count, s);
        dot(&a->column3, &x, rvp_load(w + 3 * W), count, s);
        x = load_rows(from + W, step, count);
        dot(&a->column3, &x, rvp_load(w + 4 * W), count, s);
        if (s.columns >= 3) {
            dot(&a->column2, &x, rvp_load(w + 5 * W), count, s);
        }
        if (s.columns >= 5) {
            dot(&a->column1, &x, rvp_load(w + 6 * W), count, s);
            dot(&a->column0, &x, rvp_load(w + 7 * W), count, s);
        }
        return;
    }
    const rvp_word w0 = rvp_load(w), w1 = rvp_load(w + W);
    const rvp_word w2 = s.columns >= 3 ? rvp_load(w + 2 * W) : 0, w3 = s.columns >= 5 ? rvp_load(w + 3 * W) : 0;
    dot(&a->column0, &x, w0, count, s);
    dot(&a->column1, &x, w1, count, s);
    x = load_rows(from + W, step, count);
    dot(&a->column2, &x, w0, count, s);
    dot(&a->column3, &x, w1, count, s);
    if (s.columns >= 3) {
        dot(&a->column1, &x, w2, count, s);
        if (s.columns >= 5) {
            dot(&a->column0, &x, w3, count, s);
        }
        x = load_rows(from + 2 * W, step, count);
        dot(&a->column3, &x, w2, count, s);
        if (s.columns >= 5) {
            dot(&a->column2, &x, w3, count, s);
        }
    }
}

/* The constants of one channel of each lane. */
struct channel {
    rvp_word bias, multiplier, rounder;
    const int8_t *weights, *end;
    int addend_bytes; /* of weights */
    rvp_word zero_point; /* in every 16-bit lane */
    int is_wide;
};

RVP_INLINE rvp_word scale(rvp_word sum, const struct channel *c, int is_wide)
{
    const rvp_word high = rvp_kwmmul_u(sum, c->multiplier);
    if (is_wide) {
        return rvp_sclip32_14(rvp_kwmmul_u(rvp_add32(high, rvp_sign32(high)), c->rounder));
    }
    return rvp_smmul_u(high, c->rounder);
}

/* Requantizes the rows' outputs and writes those of a row side by side. */
RVP_INLINE void write_rows(int8_t *out, const struct sums *a, const struct channel *c, int count, int is_wide)
{
    const rvp_word odd_bytes = rvp_splat16(0xff00);
#pragma GCC unroll 4
    for (int r = 0; r < count; r++) {
        const rvp_word even = rvp_pkbb16(scale(a->column2.at[r], c, is_wide), scale(a->column0.at[r], c, is_wide));
        const rvp_word odd = rvp_pkbb16(scale(a->column3.at[r], c, is_wide), scale(a->column1.at[r], c, is_wide));
        const rvp_word low = rvp_kslli16_8(rvp_add16(even, c->zero_point)) >> 8;
        const rvp_word high = rvp_kslli16_8(rvp_add16(odd, c->zero_point));
        rvp_store(out + r * 4 * W, rvp_select_bits(odd_bytes, high, low));
    }
}

/* `count` rows of four outputs whose windows begin at `from`, `step` bytes apart. */
RVP_INLINE void output_rows(const int8_t *from, int8_t *out, const struct channel *c, int step, int count,
                            struct shape s)
{
    const struct rows bias = all_rows(c->bias);
    struct sums a = {bias, bias, bias, bias};
    const int8_t *w = c->weights;
    do { /* once, or for both addends */
        const int8_t *const end = w + c->addend_bytes;
        const int8_t *row = from;
        do {
            row = anew(row);
            add_row(&a, row, w, step, count, s);
            row += row_bytes(s);
            w += words_of(s) * W;
        } while (w != end);
    } while (w != c->end);
    if (c->is_wide) {
        write_rows(out, &a, c, count, 1);
    } else {
        write_rows(out, &a, c, count, 0);
    }
}

/* All rows of a strip. */
RVP_INLINE void all_outputs(const int8_t *strip, int8_t *out, const int32_t *params,
                            const struct rvp_depthwise_window *g, struct shape s)
{
    const int8_t *record = (const int8_t *)params;
    const int step = row_bytes(s) * s.stride; /* between rows of outputs, where the strides are equal */
    const rvp_word without_mark = (rvp_word)-1 >> 1;
    struct channel c = {.zero_point = rvp_splat16((int8_t)g->image.clip)};
    c.addend_bytes = g->kernel_rows * words_of(s) * W;
    c.is_wide = (intptr_t)rvp_load(record + 2 * W) < 0;
    for (int j = 0; j < 4; j++) {
        c.bias = rvp_load(record);
        c.multiplier = rvp_load(record + W);
        c.rounder = rvp_load(record + 2 * W) & without_mark;
        c.weights = record + 3 * W;
        c.end = c.weights + g->addends * c.addend_bytes;
        const int8_t *from = strip;
        int8_t *to = out;
        int rows = g->image.out_rows;
        if (g->row_stride == s.stride) {
            for (; rows >= 4; rows -= 4) {
                output_rows(from, to, &c, step, 4, s);
                from += 4 * step;
                to += 4 * 4 * W;
            }
            if (rows == 3) {
                output_rows(from, to, &c, step, 3, s);
                rows = 0;
            } else if (rows == 2) {
                output_rows(from, to, &c, step, 2, s);
                rows = 0;
            }
        }
        for (; rows > 0; rows--) {
            output_rows(from, to, &c, 0, 1, s);
            from += g->row_stride * row_bytes(s);
            to += 4 * W;
        }
        record = c.end;
        strip += (1 + s.stride) * W;
        out += W;
    }
}

RVP_INLINE void all_strips(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch,
                           const struct rvp_depthwise_window *w, int channels, int stride, strip_kernel *kernel)
{
    const struct rvp_depthwise_geometry *const g = &w->image;
    const int rows = (g->out_rows - 1) * w->row_stride + w->kernel_rows;
    struct strips s = first_strip(x, scratch, g, stride, rows, channels);
    const int last = (g->out_columns - 1) * stride + w->kernel_columns - 1 - g->left;
    for (int out_column = 0; out_column < g->out_columns; out_column += 4) {
        complete_strip(&s, x, g, stride, last);
        kernel(s.strip, s.results, params, w);
        finish_strip(&s, out, g, out_column);
    }
}

static void strips_s1(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch, const int32_t *window,
                      int channels, strip_kernel *kernel)
{
    all_strips(x, params, out, scratch, (const struct rvp_depthwise_window *)window, channels, 1, kernel);
}

static void strips_s2(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch, const int32_t *window,
                      int channels, strip_kernel *kernel)
{
    all_strips(x, params, out, scratch, (const struct rvp_depthwise_window *)window, channels, 2, kernel);
}

/* The kernel of a strip, and the function of a group that uses it. */
#define DEPTHWISE(name, stride, columns, is_unsigned)                                                          \
    static void strip_##name(const int8_t *strip, int8_t *out, const int32_t *params,                          \
                             const struct rvp_depthwise_window *window)                                        \
    {                                                                                                          \
        all_outputs(strip, out, params, window, (struct shape){stride, columns, is_unsigned});                 \
    }                                                                                                          \
    void rvp_depthwise_##name(const void *x, const int32_t *params, void *out, int8_t *scratch,                \
                              const int32_t *window, int channels)                                             \
    {                                                                                                          \
        strips_s##stride(x, params, out, scratch, window, channels, strip_##name);                             \
    }

DEPTHWISE(s1_k2, 1, 2, 0)
DEPTHWISE(s1_k3, 1, 3, 0)
DEPTHWISE(s1_k5, 1, 5, 0)
DEPTHWISE(s2_k2, 2, 2, 0)
DEPTHWISE(s2_k3, 2, 3, 0)
DEPTHWISE(s2_k5, 2, 5, 0)
DEPTHWISE(s1_k2u, 1, 2, 1)
DEPTHWISE(s1_k3u, 1, 3, 1)
DEPTHWISE(s1_k5u, 1, 5, 1)
DEPTHWISE(s2_k2u, 2, 2, 1)
DEPTHWISE(s2_k3u, 2, 3, 1)
DEPTHWISE(s2_k5u, 2, 5, 1)
