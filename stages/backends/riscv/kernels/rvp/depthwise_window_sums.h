/* Sums of a depthwise window of any size, requantized to bytes. The lines of the input are in scratch, transposed.
 *
 * A group is 4 * RVP_LANES output channels. If the number of channels is not a multiple of that, the last group overlaps the one
 * before it. In a transposed line a lane has four columns of a channel. A word of a line is four registers: channel j of the group
 * is in the lower lane of register j, channel j + 4 in the upper one (RV64). A layer with dilation d is split into d x d images
 * without dilation.
 *
 * The bytes are not shifted. Instead, for each byte of a word at which a window can begin, there are weights shifted to this
 * position, in as many words as the window reaches; other weights are 0. For seven columns, with the words of weights in the order
 * of params:
 *
 *   stride 1         c0 c1 c2 c3 | c4 c5 c6 c7 | c8 c9 ..
 *     output 0       w0 w1 w2 w3 | w4 w5 w6                      0, 4
 *     output 1          w0 w1 w2 | w3 w4 w5 w6                   1, 5
 *     output 2             w0 w1 | w2 w3 w4 w5 | w6              2, 6, 9
 *     output 3                w0 | w1 w2 w3 w4 | w5 w6           3, 7, 8
 *
 * Here two words are full: all four outputs use them. The last word is the tail, which two of the four outputs use.
 *
 *   stride 2         c0 c1 c2 c3 | c4 c5 c6 c7 | c8 c9 ca cb | cc ..
 *     output 0       w0 w1 w2 w3 | w4 w5 w6                            0, 2
 *     output 1             w0 w1 | w2 w3 w4 w5 | w6                    1, 3, 5
 *     output 2                     w0 w1 w2 w3 | w4 w5 w6              0, 2
 *     output 3                           w0 w1 | w2 w3 w4 w5 | w6      1, 3, 5
 *
 * These are three full pairs of words. Word 4 would be zero: the window is odd, so the even outputs do not have it.
 *
 * Four words of outputs (16 accumulators) are computed at a time, next to each other in a row or below each other. A word of weights
 * is loaded once for all four.
 *
 *   params   [group][j][3 + addends * kernel_rows * words] registers: bias (zero points folded in), multiplier, rounder, words of
 *            weights for each row of the window, then the rows of the second addends. Marks in the rounders of a group select how it
 *            is requantized (packing.py)
 */
#pragma once

#include "depthwise_pixels.h"
#include "depthwise_window.h"
#include "scaled_sums.h"

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

/* Registers for neighbouring words of outputs: accumulators of one column, or words of lines. */
struct words {
    rvp_word at[AT_ONCE];
};

/* Constants of a function: columns of the window as above; `full`, or 0 to use window->full_words. With stride 2 `tail` is
 * whether the window is odd.
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

/* Hides the pointer from the compiler, which then does not keep loaded values for the next row of the window: there are no
 * registers for them.
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

/* `count` words of outputs. Their windows begin at `from` and the words after it. */
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
