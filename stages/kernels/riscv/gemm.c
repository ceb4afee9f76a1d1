/* y = requantize(bias + x * transpose(w)), six rows at a time.
 *
 * A word holds an element of several rows, so that one multiplication by a weight is a product for each of them, and one
 * addition adds all of these to their sums. The rows of a tile are packed into such words once for all columns. Sums leave
 * their part of a word unless they are taken apart in time; how often is what differs between the sizes of a word.
 */
#include "gemm.h"

#include "channels.h"
#include "elements.h"
#include "rectified.h"
#include "scaling.h"

enum { ROWS = 6 };

/* Loads moved up would take registers of sums; so do sums that are joined across the branches of a loop. */
#define AS_WRITTEN                                                                                                     \
    __attribute__((noinline, optimize("no-schedule-insns", "no-code-hoisting", "no-tree-pre", "no-tree-reassoc",       \
                                      "no-crossjumping", "no-tree-ter")))

/* The sums of six rows. */
struct six {
    int32_t a, b, c, d, e, f;
};

/* How sums become results, of how many rows, and where those of the next row are. */
struct results {
    int32_t step, zero_point, low, high, rows;
};

/* Row i of a tile; one of fewer rows repeats its last. */
INLINE const int8_t *row_of(const int8_t *x, int32_t i, int32_t rows, const struct riscv_gemm *e)
{
    return x + (i < rows ? i : rows - 1) * e->x_row;
}

INLINE uint8_t narrowed(int32_t sum, const int32_t *channel, const struct results *o)
{
    const intptr_t y = scaled_down(sum, channel[FL_MULTIPLIER], channel[FL_SHIFT]) + o->zero_point;
    return (uint8_t)clamped(y, o->low, o->high);
}

static uint8_t scaled(int32_t sum, const int32_t *channel, const struct results *o)
{
    const int32_t y = scaled_twice(sum, channel[FL_MULTIPLIER], channel[FL_SHIFT]);
    return (uint8_t)fl_clamp(fl_add_wrapping(y, o->zero_point), o->low, o->high);
}

/* A column of fewer than six rows, or of any that no ReLU follows. */
static __attribute__((noinline)) void finish_any(const struct six *s, const int32_t *channel, uint8_t *y,
                                                 const struct results *where)
{
    const struct results o = *where; /* copies: y may point anywhere */
    const int32_t constants[FL_CHANNEL] = {0, channel[FL_MULTIPLIER], channel[FL_SHIFT]};
    const int32_t *sums = &s->a;
    if (constants[FL_SHIFT] >= 0 || o.rows < ROWS) {
        for (int32_t i = 0; i < o.rows; i++) {
            y[i * o.step] = scaled(sums[i], constants, &o);
        }
        return;
    }
#pragma GCC unroll 6
    for (int32_t i = 0; i < ROWS; i++) {
        *y = narrowed(sums[i], constants, &o);
        y += o.step;
    }
}

/* A column of six rows. */
INLINE void finish(const struct six *s, const int32_t *channel, uint8_t *y, const struct results *o, int32_t is_usual)
{
    if (!is_usual) {
        const struct six in_memory = *s;
        finish_any(&in_memory, channel, y, o);
        return;
    }
    const struct rectifier r = rectifier_of(channel, o->zero_point);
    const intptr_t low = o->low, high = o->high;
    const int32_t step = o->step;
    *y = (uint8_t)clamped(rectified(s->a, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->b, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->c, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->d, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->e, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->f, &r), low, high);
}

#if UINTPTR_MAX > UINT32_MAX

/* Three rows in a word, x0 + x1 * 2^21 + x2 * 2^42, and eight columns in a panel, element k of all eight side by side:
 *
 *      w0[0] w1[0] ... w7[0]  w0[1] w1[1] ... w7[1]  ...         each k loads 24 bytes for 48 products
 *
 * SEGMENT products of two int8 are in [-2^20 + 2^13, 2^20]; with MOST added they are a number of 21 bits.
 */
enum { PANEL = 8, SEGMENT = 64, MOST = (1 << 20) - 1, MASK = (1 << 21) - 1 };
static const uint64_t BEGIN = (uint64_t)MOST << 42 | (uint64_t)MOST << 21 | MOST;

typedef uint64_t word;

static void pack(const int8_t *x, int32_t rows, const struct riscv_gemm *e, word *to)
{
    const int8_t *x1 = row_of(x, 1, rows, e), *x2 = row_of(x, 2, rows, e), *x3 = row_of(x, 3, rows, e);
    const int8_t *x4 = row_of(x, 4, rows, e), *x5 = row_of(x, 5, rows, e);
    const int8_t *const end = x + e->row;
#pragma GCC unroll 2
    while (x != end) {
        to[0] = (uint64_t)(int64_t)*x++ + ((uint64_t)(int64_t)*x1++ << 21) + ((uint64_t)(int64_t)*x2++ << 42);
        to[1] = (uint64_t)(int64_t)*x3++ + ((uint64_t)(int64_t)*x4++ << 21) + ((uint64_t)(int64_t)*x5++ << 42);
        to += 2;
    }
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

/* Up to SEGMENT products of each row and column; the first ones begin the sums. */
AS_WRITTEN static void segment(const word *x, const int8_t *w, int32_t k, int first, struct columns *s)
{
    const word *const end = x + 2 * k;
    uint64_t a0 = BEGIN, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
    uint64_t b0 = a0, b1 = a0, b2 = a0, b3 = a0, b4 = a0, b5 = a0, b6 = a0, b7 = a0;
#pragma GCC unroll 2
    while (x != end) {
        const uint64_t v = x[0], z = x[1];
        a0 += v * (uint64_t)(int64_t)w[0];
        b0 += z * (uint64_t)(int64_t)w[0];
        a1 += v * (uint64_t)(int64_t)w[1];
        b1 += z * (uint64_t)(int64_t)w[1];
        a2 += v * (uint64_t)(int64_t)w[2];
        b2 += z * (uint64_t)(int64_t)w[2];
        a3 += v * (uint64_t)(int64_t)w[3];
        b3 += z * (uint64_t)(int64_t)w[3];
        a4 += v * (uint64_t)(int64_t)w[4];
        b4 += z * (uint64_t)(int64_t)w[4];
        a5 += v * (uint64_t)(int64_t)w[5];
        b5 += z * (uint64_t)(int64_t)w[5];
        a6 += v * (uint64_t)(int64_t)w[6];
        b6 += z * (uint64_t)(int64_t)w[6];
        a7 += v * (uint64_t)(int64_t)w[7];
        b7 += z * (uint64_t)(int64_t)w[7];
        w += PANEL;
        x += 2;
    }
    if (first) {
        take(a0, b0, &s->c0);
        take(a1, b1, &s->c1);
        take(a2, b2, &s->c2);
        take(a3, b3, &s->c3);
        take(a4, b4, &s->c4);
        take(a5, b5, &s->c5);
        take(a6, b6, &s->c6);
        take(a7, b7, &s->c7);
    } else {
        add(a0, b0, &s->c0);
        add(a1, b1, &s->c1);
        add(a2, b2, &s->c2);
        add(a3, b3, &s->c3);
        add(a4, b4, &s->c4);
        add(a5, b5, &s->c5);
        add(a6, b6, &s->c6);
        add(a7, b7, &s->c7);
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

#else

/* Two rows in a word, x0 + x1 * 2^16, and two columns in a panel:
 *
 *      the number of counts, a bit for each group that is counted once, 16 to a halfword, and then the weights
 *
 *      w0[0] w1[0]  w0[1] w1[1]  w0[2] w1[2]  w0[3] w1[3]  ...       each k loads 14 bytes for 12 products
 *
 * Two products of int8 are in [-32512, 32768], and so are the four of a group where weights are not all large: MOST added
 * makes them a number of 16 bits. It is counted once for a group, or after two products and two:
 *
 *      both += word       upper += word >> 16                        both - upper * 2^16 is the sum of the lower halves
 */
enum { PANEL = 2, GROUP = 4, MOST = 32767 };
static const uint32_t BEGIN = (uint32_t)MOST << 16 | MOST;

typedef uint32_t word;

static void pack(const int8_t *x, int32_t rows, const struct riscv_gemm *e, word *to)
{
    const int8_t *x1 = row_of(x, 1, rows, e), *x2 = row_of(x, 2, rows, e), *x3 = row_of(x, 3, rows, e);
    const int8_t *x4 = row_of(x, 4, rows, e), *x5 = row_of(x, 5, rows, e);
    const int8_t *const end = x + e->row;
    word *const to_end = to + 3 * e->depth;
#pragma GCC unroll 2
    while (x != end) {
        to[0] = (uint32_t)*x++ + ((uint32_t)*x1++ << 16);
        to[1] = (uint32_t)*x2++ + ((uint32_t)*x3++ << 16);
        to[2] = (uint32_t)*x4++ + ((uint32_t)*x5++ << 16);
        to += 3;
    }
    while (to != to_end) {
        *to++ = 0;
    }
}

struct counts {
    uint32_t upper, both;
};

/* The sums of six rows, and the words that will be counted. */
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

/* `elements` of them, which are counted once. */
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
    const int32_t words = 3 * e->depth, masks = (e->depth + 16 * GROUP - 1) / (16 * GROUP);
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
            /* The bit behind the last group's ends the loop when it has come to the top. */
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

/* The last tile begins where six rows are left: some of the one before are computed again. */
void riscv_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t *packed, int32_t rows,
                   int32_t columns, const void *parameters)
{
    const struct riscv_gemm *e = parameters;
    const int32_t at_once = rows < ROWS ? rows : ROWS;
    for (int32_t done = 0; done < rows; done += ROWS) {
        const int32_t i = done + at_once <= rows ? done : rows - at_once;
        pack(x + i * e->x_row, at_once, e, (word *)packed);
        panels((const word *)packed, w, channels, (uint8_t *)y + i * e->y_row, at_once, columns, e);
    }
}
