/* Products of six rows by panels of weights, on RV64: a word has three rows. */
#pragma once

#include "gemm.h"
#include "six.h"

#if UINTPTR_MAX > UINT32_MAX

/* Three rows in a word, x0 + x1 * 2^21 + x2 * 2^42, and eight columns in a panel, element k of all eight side by side:
 *
 *      w0[0] w1[0] ... w7[0]  w0[1] w1[1] ... w7[1]  ...         each k loads 24 bytes for 48 products
 *
 * The sum of SEGMENT products of two int8 is in [-2^20 + 2^13, 2^20]; with MOST added it is a number of 21 bits.
 */
enum { PANEL = 8, WORDS = 2, SEGMENT = 64, MOST = (1 << 20) - 1, MASK = (1 << 21) - 1 };
static const uint64_t BEGIN = (uint64_t)MOST << 42 | (uint64_t)MOST << 21 | MOST, ONES = (uint64_t)1 << 42 | 1 << 21 | 1;

typedef uint64_t word;

INLINE void pack_element(word *to, const struct six_rows *x, int k)
{
    to[0] = (uint64_t)(int64_t)x->a[k] + ((uint64_t)(int64_t)x->b[k] << 21) + ((uint64_t)(int64_t)x->c[k] << 42);
    to[1] = (uint64_t)(int64_t)x->d[k] + ((uint64_t)(int64_t)x->e[k] << 21) + ((uint64_t)(int64_t)x->f[k] << 42);
}

struct columns {
    struct six c0, c1, c2, c3, c4, c5, c6, c7;
};

INLINE void take(uint64_t abc, uint64_t def, struct six *s)
{
    *s = (struct six){(int32_t)(abc & MASK), (int32_t)(abc >> 21 & MASK), (int32_t)(abc >> 42),
                      (int32_t)(def & MASK), (int32_t)(def >> 21 & MASK), (int32_t)(def >> 42)};
}

INLINE void add(uint64_t abc, uint64_t def, struct six *s)
{
    struct six t;
    take(abc, def, &t);
    *s = (struct six){s->a + t.a, s->b + t.b, s->c + t.c, s->d + t.d, s->e + t.e, s->f + t.f};
}

/* Up to SEGMENT products of each row and column; the first products start the sums. */
AS_WRITTEN static void segment(const word *x, const int8_t *w, int32_t k, int first, struct columns *s)
{
    const word *const end = x + 2 * k;
    uint64_t a0 = BEGIN, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
    uint64_t b0 = a0, b1 = a0, b2 = a0, b3 = a0, b4 = a0, b5 = a0, b6 = a0, b7 = a0;
#pragma GCC unroll 2
    while (x != end) {
        const uint64_t v = x[0], z = x[1];
#define MULTIPLY_PAIR(j)                       \
        a##j += v * (uint64_t)(int64_t)w[j];   \
        b##j += z * (uint64_t)(int64_t)w[j];
        EACH_COLUMN(MULTIPLY_PAIR)
        w += PANEL;
        x += 2;
    }
    if (first) {
#define TAKE(j) take(a##j, b##j, &s->c##j);
        EACH_COLUMN(TAKE)
    } else {
#define ADD(j) add(a##j, b##j, &s->c##j);
        EACH_COLUMN(ADD)
    }
}

/* All columns of up to six rows. */
static void panels(const word *x, const int8_t *w, const int32_t *channels, uint8_t *y, int32_t rows,
                   int32_t columns, const struct riscv_gemm *e)
{
    const struct results o = {e->y_row, e->zero_point, e->low, e->high, rows};
    const int32_t usual = e->rectified && rows == ROWS;
    const int32_t depth = e->depth, begun = (depth + SEGMENT - 1) / SEGMENT * MOST;
    for (; columns > 0; columns -= PANEL) {
        struct columns s;
        for (int32_t k = 0; k < depth; k += SEGMENT) {
            const int32_t left = depth - k;
            segment(x + 2 * k, w + PANEL * k, left < SEGMENT ? left : SEGMENT, k == 0, &s);
        }
        w += PANEL * depth;
        const struct six *sums = &s.c0;
        for (int32_t j = columns < PANEL ? columns : PANEL; j > 0; j--) {
            const int32_t bias = fl_add_wrapping(channels[FL_BIAS], -begun);
            const struct six t = {fl_add_wrapping(sums->a, bias), fl_add_wrapping(sums->b, bias),
                                  fl_add_wrapping(sums->c, bias), fl_add_wrapping(sums->d, bias),
                                  fl_add_wrapping(sums->e, bias), fl_add_wrapping(sums->f, bias)};
            finish(&t, channels, y, &o, usual);
            sums++;
            channels += FL_CHANNEL;
            y += e->y_column;
        }
    }
}

#endif
