/* Products of six rows by panels of weights, on RV32: a word has two rows. */
#pragma once

#include "gemm.h"
#include "six.h"

#if UINTPTR_MAX == UINT32_MAX

/* Two rows in a word, x0 + x1 * 2^16, and two columns in a panel:
 *
 *      the number of counts, a bit for each group that is counted once, 16 to a halfword, and then the weights
 *
 *      w0[0] w1[0]  w0[1] w1[1]  w0[2] w1[2]  w0[3] w1[3]  ...       each k loads 14 bytes for 12 products
 *
 * The sum of two products of int8 is in [-32512, 32768]. So is the sum of the four products of a group, unless many weights are
 * large. With MOST added it is a number of 16 bits. It is counted once per group, or after each two products:
 *
 *      both += word       upper += word >> 16                        both - upper * 2^16 is the sum of the lower halves
 */
enum { PANEL = 2, WORDS = 3, GROUP = 4, MOST = 32767 };
static const uint32_t BEGIN = (uint32_t)MOST << 16 | MOST, ONES = 1 << 16 | 1;

typedef uint32_t word;

INLINE void pack_element(word *to, const struct six_rows *x, int k)
{
    to[0] = (uint32_t)x->a[k] + ((uint32_t)x->b[k] << 16);
    to[1] = (uint32_t)x->c[k] + ((uint32_t)x->d[k] << 16);
    to[2] = (uint32_t)x->e[k] + ((uint32_t)x->f[k] << 16);
}

struct counts {
    uint32_t upper, both;
};

/* The sums of six rows, and the words that are counted next. */
struct column {
    struct counts a, b, c;
};

struct words {
    word a, b, c;
};

INLINE void begin(struct column *s, int32_t bias, int32_t counted)
{
    const uint32_t upper = (uint32_t)bias - (uint32_t)(counted * MOST);
    s->a = s->b = s->c = (struct counts){upper, upper + (upper << 16)};
}

INLINE void count(struct counts *s, word t)
{
    t += BEGIN;
    s->both += t;
    s->upper += t >> 16;
}

/* One element of six rows by two weights. */
INLINE void multiply(const word *x, const int8_t *w, struct words *t0, struct words *t1)
{
    const uint32_t w0 = (uint32_t)w[0], w1 = (uint32_t)w[1];
    const word a = x[0];
    t0->a += a * w0;
    t1->a += a * w1;
    const word b = x[1];
    t0->b += b * w0;
    t1->b += b * w1;
    const word c = x[2];
    t0->c += c * w0;
    t1->c += c * w1;
}

/* `elements` elements, which are counted once. */
INLINE void multiply_and_count(const word *x, const int8_t *w, int elements, struct column *s0, struct column *s1)
{
    struct words t0 = {0}, t1 = {0};
    multiply(x, w, &t0, &t1);
    multiply(x + 3, w + 2, &t0, &t1);
    if (elements == GROUP) {
        multiply(x + 6, w + 4, &t0, &t1);
        multiply(x + 9, w + 6, &t0, &t1);
    }
    count(&s0->a, t0.a);
    count(&s1->a, t1.a);
    count(&s0->b, t0.b);
    count(&s1->b, t1.b);
    count(&s0->c, t0.c);
    count(&s1->c, t1.c);
}

INLINE struct six sums_of(const struct column *s)
{
    return (struct six){
        (int32_t)(s->a.both - (s->a.upper << 16)), (int32_t)s->a.upper, (int32_t)(s->b.both - (s->b.upper << 16)),
        (int32_t)s->b.upper,                       (int32_t)(s->c.both - (s->c.upper << 16)), (int32_t)s->c.upper,
    };
}

INLINE uint32_t halfword(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8;
}

/* All columns of up to six rows. */
AS_WRITTEN static void panels(const word *x, const int8_t *w, const int32_t *channels, uint8_t *y, int32_t rows,
                              int32_t columns, const struct riscv_gemm *e)
{
    const struct results o = {e->y_row, e->zero_point, e->low, e->high, rows};
    const int32_t usual = e->rectified && rows == ROWS;
    const int32_t words = WORDS * e->depth, masks = (e->depth + 16 * GROUP - 1) / (16 * GROUP);
    for (; columns > 0; columns -= PANEL) {
        const uint8_t *header = (const uint8_t *)w;
        const word *at = x;
        const word *const end = x + words;
        const int32_t counted = (int32_t)halfword(header);
        struct column s0, s1;
        begin(&s0, channels[FL_BIAS], counted);
        begin(&s1, channels[FL_CHANNEL + FL_BIAS], counted);
        w += 2 + 2 * masks;
        do {
            header += 2;
            /* A bit after the last group's bit ends the loop when it has been shifted to the top. */
            for (uint32_t once = halfword(header) << 16 | 0x8000; once != 0x80000000 && at != end; once <<= 1) {
                if ((int32_t)once < 0) {
                    multiply_and_count(at, w, GROUP, &s0, &s1);
                } else {
                    multiply_and_count(at, w, GROUP / 2, &s0, &s1);
                    multiply_and_count(at + 6, w + 4, GROUP / 2, &s0, &s1);
                }
                at += 3 * GROUP;
                w += PANEL * GROUP;
            }
        } while (at != end);
        const struct six first = sums_of(&s0), second = sums_of(&s1);
        finish(&first, channels, y, &o, usual);
        y += e->y_column;
        channels += FL_CHANNEL;
        if (columns > 1) {
            finish(&second, channels, y, &o, usual);
            y += e->y_column;
            channels += FL_CHANNEL;
        }
    }
}

#endif
