/* The real FFT of one type, and its inverse. The file that includes this defines
 *
 *      NAME(function)          name of a function
 *      SCALAR, SUM, PRODUCT    types of stored numbers, of numbers in registers, and of products
 *      PLUS(a, b), MINUS(a, b) sums, modulo the width of SCALAR when they are stored
 *      ROUND(product)          a product as a SUM
 *      SHARE(radix)            the factor of a stage's inputs; empty if they are not scaled
 *      HALF(sum)               half of it, rounded down
 *      EXACT                   1 if a product with the factor 1 can change a number (the sign of zero)
 *
 * A complex FFT of n numbers has stages of radix 2, 3, 4 or 5, the innermost first. A stage joins FFTs of m numbers:
 *
 *      y[k], y[k + m], ..., y[k + (radix - 1) m]     k < m, in every group of radix * m numbers
 *
 * Input q is multiplied by twiddle k q n / (radix m). Sums of a butterfly fit SCALAR, because its inputs are divided by
 * the radix.
 */
#include "signal_fft.h"

typedef struct { SCALAR r, i; } NAME(pair);
typedef struct { SUM r, i; } NAME(sum);
#define PAIR NAME(pair)
#define VALUE NAME(sum)

static inline VALUE NAME(shared)(PAIR a, PRODUCT share)
{
    (void)share;
    return (VALUE){SHARED(a.r, share), SHARED(a.i, share)};
}

static inline VALUE NAME(times)(VALUE a, PAIR w)
{
    return (VALUE){ROUND((PRODUCT)a.r * w.r - (PRODUCT)a.i * w.i), ROUND((PRODUCT)a.r * w.i + (PRODUCT)a.i * w.r)};
}

static inline VALUE NAME(plus)(VALUE a, VALUE b) { return (VALUE){PLUS(a.r, b.r), PLUS(a.i, b.i)}; }
static inline VALUE NAME(minus)(VALUE a, VALUE b) { return (VALUE){MINUS(a.r, b.r), MINUS(a.i, b.i)}; }
static inline PAIR NAME(stored)(VALUE a) { return (PAIR){(SCALAR)a.r, (SCALAR)a.i}; }

/* Divide an input of a stage and multiply it by its twiddle. If `w` is 1, the product changes only the sign of zero. */
static inline VALUE NAME(turned)(PAIR a, PRODUCT share, PAIR w, int is_one)
{
    const VALUE x = NAME(shared)(a, share);
    return is_one && !EXACT ? x : NAME(times)(x, w);
}

static inline void NAME(two)(PAIR *y, int32_t m, const PAIR *w, int is_one)
{
    const VALUE a = NAME(shared)(y[0], SHARE(2)), b = NAME(turned)(y[m], SHARE(2), w[0], is_one);
    y[0] = NAME(stored)(NAME(plus)(a, b));
    y[m] = NAME(stored)(NAME(minus)(a, b));
}

static inline void NAME(four)(PAIR *y, int32_t m, const PAIR *w, int is_one, int inverse)
{
    const VALUE a = NAME(shared)(y[0], SHARE(4)), b = NAME(turned)(y[m], SHARE(4), w[0], is_one);
    const VALUE c = NAME(turned)(y[2 * m], SHARE(4), w[1], is_one);
    const VALUE d = NAME(turned)(y[3 * m], SHARE(4), w[2], is_one);
    const VALUE even = NAME(plus)(a, c), odd = NAME(plus)(b, d), across = NAME(minus)(b, d), rest = NAME(minus)(a, c);
    const PAIR up = {(SCALAR)PLUS(rest.r, across.i), (SCALAR)MINUS(rest.i, across.r)};
    const PAIR down = {(SCALAR)MINUS(rest.r, across.i), (SCALAR)PLUS(rest.i, across.r)};
    y[0] = NAME(stored)(NAME(plus)(even, odd));
    y[2 * m] = NAME(stored)(NAME(minus)(even, odd));
    y[m] = inverse ? down : up;
    y[3 * m] = inverse ? up : down;
}

static inline void NAME(three)(PAIR *y, int32_t m, const PAIR *w, int is_one, SCALAR sine)
{
    const VALUE a = NAME(shared)(y[0], SHARE(3)), b = NAME(turned)(y[m], SHARE(3), w[0], is_one);
    const VALUE c = NAME(turned)(y[2 * m], SHARE(3), w[1], is_one);
    const VALUE total = NAME(plus)(b, c), rest = NAME(minus)(b, c);
    const VALUE middle = {MINUS(a.r, HALF(total.r)), MINUS(a.i, HALF(total.i))};
    const VALUE across = {ROUND((PRODUCT)rest.r * sine), ROUND((PRODUCT)rest.i * sine)};
    y[0] = NAME(stored)(NAME(plus)(a, total));
    y[m] = (PAIR){(SCALAR)MINUS(middle.r, across.i), (SCALAR)PLUS(middle.i, across.r)};
    y[2 * m] = (PAIR){(SCALAR)PLUS(middle.r, across.i), (SCALAR)MINUS(middle.i, across.r)};
}

static inline VALUE NAME(even)(VALUE a, VALUE b, VALUE c, SCALAR first, SCALAR second)
{
    return (VALUE){PLUS(PLUS(a.r, ROUND((PRODUCT)b.r * first)), ROUND((PRODUCT)c.r * second)),
                   PLUS(PLUS(a.i, ROUND((PRODUCT)b.i * first)), ROUND((PRODUCT)c.i * second))};
}

static inline void NAME(five)(PAIR *y, int32_t m, const PAIR *w, int is_one, PAIR first, PAIR second)
{
    const VALUE a = NAME(shared)(y[0], SHARE(5)), b = NAME(turned)(y[m], SHARE(5), w[0], is_one);
    const VALUE c = NAME(turned)(y[2 * m], SHARE(5), w[1], is_one);
    const VALUE d = NAME(turned)(y[3 * m], SHARE(5), w[2], is_one);
    const VALUE e = NAME(turned)(y[4 * m], SHARE(5), w[3], is_one);
    const VALUE outer = NAME(plus)(b, e), across = NAME(minus)(b, e);
    const VALUE inner = NAME(plus)(c, d), rest = NAME(minus)(c, d);
    const VALUE x = NAME(even)(a, outer, inner, first.r, second.r), z = NAME(even)(a, outer, inner, second.r, first.r);
    const VALUE s = {PLUS(ROUND((PRODUCT)across.i * first.i), ROUND((PRODUCT)rest.i * second.i)),
                     MINUS(-ROUND((PRODUCT)across.r * first.i), ROUND((PRODUCT)rest.r * second.i))};
    const VALUE t = {PLUS(-ROUND((PRODUCT)across.i * second.i), ROUND((PRODUCT)rest.i * first.i)),
                     MINUS(ROUND((PRODUCT)across.r * second.i), ROUND((PRODUCT)rest.r * first.i))};
    y[0] = (PAIR){(SCALAR)PLUS(a.r, PLUS(outer.r, inner.r)), (SCALAR)PLUS(a.i, PLUS(outer.i, inner.i))};
    y[m] = NAME(stored)(NAME(minus)(x, s));
    y[2 * m] = NAME(stored)(NAME(plus)(z, t));
    y[3 * m] = NAME(stored)(NAME(minus)(z, t));
    y[4 * m] = NAME(stored)(NAME(plus)(x, s));
}

/* Compute a stage: for each k, the butterfly in every group. The twiddles of k = 0 are 1. */
static void NAME(stage)(PAIR *y, int32_t n, int32_t radix, int32_t m, const PAIR *twiddles, int inverse)
{
    const int32_t group = radix * m, step = n / group;
    const PAIR first = twiddles[step * m], second = twiddles[radix == 5 ? 2 * step * m : 0], *end = y + n;
    for (int32_t k = 0; k < m; k++) {
        PAIR w[4];
        for (int32_t q = 1; q < radix; q++)
            w[q - 1] = twiddles[k * q * step];
        PAIR *at = y + k;
        if (k == 0 && radix == 4)
            for (; at < end; at += group)
                NAME(four)(at, m, w, 1, inverse);
        else if (radix == 4)
            for (; at < end; at += group)
                NAME(four)(at, m, w, 0, inverse);
        else if (radix == 2)
            for (; at < end; at += group)
                NAME(two)(at, m, w, k == 0);
        else if (radix == 3)
            for (; at < end; at += group)
                NAME(three)(at, m, w, 0, first.i);
        else
            for (; at < end; at += group)
                NAME(five)(at, m, w, 0, first, second);
    }
}

/* Compute the FFT in place. The input is in the order of the first stage. */
static void NAME(fft)(PAIR *y, const PAIR *twiddles, const struct fl_fft *p, int inverse)
{
    for (int32_t s = 0, m = 1; s < p->stages; m *= p->radices[s++])
        NAME(stage)(y, p->half, p->radices[s], m, twiddles, inverse);
}

/* For numbers k and half - k of a spectrum: half of their sum, and half of their difference times a twiddle. */
static inline void NAME(joined)(PAIR low, PAIR high, PAIR turn, VALUE *total, VALUE *turned)
{
    const PAIR mirrored = {high.r, (SCALAR)MINUS(0, high.i)};
    const VALUE a = NAME(shared)(low, SHARE(2)), b = NAME(shared)(mirrored, SHARE(2));
    const VALUE product = NAME(times)(NAME(minus)(a, b), turn);
    *total = NAME(plus)(a, b);
    *turned = (VALUE){(SCALAR)product.r, (SCALAR)product.i};
}

void NAME(rfft)(const void *samples, void *spectrum, const void *table, const void *real_table, const uint16_t *order,
                const void *parameters)
{
    const struct fl_fft *p = parameters;
    const PAIR *twiddles = table, *turns = real_table;
    const SCALAR *x = samples;
    const int32_t half = p->half, pairs = p->samples / 2;
    PAIR *y = spectrum;
    for (int32_t frame = 0; frame < p->frames; frame++, x += p->samples, y += half + 1) {
        for (int32_t k = 0; k < half; k++) {
            const int32_t at = order[k];
            if (at < pairs)
                y[k] = (PAIR){x[2 * at], x[2 * at + 1]};
            else
                y[k] = (PAIR){2 * at < p->samples ? x[2 * at] : 0, 0};
        }
        NAME(fft)(y, twiddles, p, 0);
        const VALUE ends = NAME(shared)(y[0], SHARE(2));
        for (int32_t k = 1; k <= half / 2; k++) {
            VALUE total, turned;
            NAME(joined)(y[k], y[half - k], turns[k - 1], &total, &turned);
            y[k] = (PAIR){(SCALAR)HALF(PLUS(total.r, turned.r)), (SCALAR)HALF(PLUS(total.i, turned.i))};
            y[half - k] = (PAIR){(SCALAR)HALF(MINUS(total.r, turned.r)), (SCALAR)HALF(MINUS(turned.i, total.i))};
        }
        y[0] = (PAIR){(SCALAR)PLUS(ends.r, ends.i), 0};
        y[half] = (PAIR){(SCALAR)MINUS(ends.r, ends.i), 0};
    }
}

void NAME(irfft)(const void *spectrum, void *samples, const void *table, const void *real_table, const uint16_t *order,
                 void *scratch, const void *parameters)
{
    const struct fl_fft *p = parameters;
    const PAIR *twiddles = table, *turns = real_table, *x = spectrum;
    const int32_t half = p->half;
    PAIR *y = samples, *inner = scratch;
    for (int32_t frame = 0; frame < p->frames; frame++, x += half + 1, y += half) {
        const PAIR ends = {(SCALAR)PLUS(x[0].r, x[half].r), (SCALAR)MINUS(x[0].r, x[half].r)};
        inner[0] = NAME(stored)(NAME(shared)(ends, SHARE(2)));
        for (int32_t k = 1; k <= half / 2; k++) {
            VALUE total, turned;
            NAME(joined)(x[k], x[half - k], turns[k - 1], &total, &turned);
            inner[k] = NAME(stored)(NAME(plus)(total, turned));
            inner[half - k] = (PAIR){(SCALAR)MINUS(total.r, turned.r), (SCALAR)MINUS(0, MINUS(total.i, turned.i))};
        }
        for (int32_t k = 0; k < half; k++)
            y[k] = inner[order[k]];
        NAME(fft)(y, twiddles, p, 1);
        DIVIDED((SCALAR *)y, 2 * half)
    }
}
