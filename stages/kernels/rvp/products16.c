/* Three pixels times four channels, whose weights alternate two by two: a register of weights has those of a step for both. A step is
 * four elements of the depth on RV64, whose sums have 64 bits, and two on RV32, with sums of 32. One pixel takes two
 * steps at a time.
 *
 *              a    b    c    d     <- weights: 2 loads, 4 to widen them
 *   pixel 0  x | 12 sums            x: a load
 *   pixel 1  x |
 *   pixel 2  x |
 */
#include "products16.h"

#include "rvp_intrinsics.h"

#define P16_ROWS 3
#define P16_CHANNELS 4
#define P16_PAIR 2
#define P16_PAIRED 0

#if __riscv_xlen == 64
RVP_ACCUMULATE(add_products, 0x77, 1, 0x46) /* smalda: d += four products of 16 bits */
typedef int64_t p16_sum;
#else
RVP_ACCUMULATE(add_products, 0x77, 1, 0x24) /* kmada: d += two products of 16 bits, saturated, which chunks never reach */
typedef int32_t p16_sum;
#endif

enum { STEP = RVP_WORD_BYTES / 2 };

#define S16_HIGH(t, high) ((int32_t)rvp_smmul_u((rvp_word)(t), (rvp_word)(high)))

RVP_INLINE void p16_copy(int16_t *to, int32_t apart, const int16_t *from, int32_t count)
{
    (void)apart; /* elements are neighbours */
    if ((((uintptr_t)to | (uintptr_t)from) & (RVP_WORD_BYTES - 1)) == 0) {
        for (; count >= 4 * STEP; count -= 4 * STEP) {
            const rvp_word a = rvp_load(from), b = rvp_load(from + STEP);
            const rvp_word c = rvp_load(from + 2 * STEP), d = rvp_load(from + 3 * STEP);
            rvp_store(to, a);
            rvp_store(to + STEP, b);
            rvp_store(to + 2 * STEP, c);
            rvp_store(to + 3 * STEP, d);
            from += 4 * STEP;
            to += 4 * STEP;
        }
        for (; count >= STEP; count -= STEP) {
            rvp_store(to, rvp_load(from));
            from += STEP;
            to += STEP;
        }
    }
    for (; count > 0; count--) {
        *to++ = *from++;
    }
}

/* Of four channels. */
struct four {
    rvp_word a, b, c, d;
};

RVP_INLINE void load_weights(struct four *w, const int8_t *first, const int8_t *second)
{
    const rvp_word ab = rvp_load(first), cd = rvp_load(second);
    w->a = rvp_sunpkd820(ab);
    w->b = rvp_sunpkd831(ab);
    w->c = rvp_sunpkd820(cd);
    w->d = rvp_sunpkd831(cd);
}

RVP_INLINE void multiply(struct four *sums, const int16_t *x, const struct four *w)
{
    const rvp_word value = rvp_load(x);
    sums->a = rvp_add_products(sums->a, value, w->a);
    sums->b = rvp_add_products(sums->b, value, w->b);
    sums->c = rvp_add_products(sums->c, value, w->c);
    sums->d = rvp_add_products(sums->d, value, w->d);
}

RVP_INLINE void put_sums(p16_sum *sums, int32_t rows, const struct four *of)
{
    sums[0] = (p16_sum)of->a;
    sums[rows] = (p16_sum)of->b;
    sums[2 * rows] = (p16_sum)of->c;
    sums[3 * rows] = (p16_sum)of->d;
}

RVP_INLINE void p16_products(int32_t rows, const int16_t *panel, int32_t pitch, const int8_t *w, int32_t depth, int32_t count,
                             p16_sum *sums)
{
    const int8_t *second = w + 2 * depth;
    const int16_t *const end = panel + count;
    struct four s0 = {0, 0, 0, 0}, weights;
    if (rows == 1) {
        for (; panel != end; panel += 2 * STEP) {
#pragma GCC unroll 2
            for (int32_t k = 0; k < 2 * STEP; k += STEP) {
                load_weights(&weights, w + 2 * k, second + 2 * k);
                multiply(&s0, panel + k, &weights);
            }
            w += 4 * STEP;
            second += 4 * STEP;
        }
        put_sums(sums, 1, &s0);
        return;
    }
    const int16_t *x1 = panel + pitch, *x2 = x1 + pitch;
    struct four s1 = s0, s2 = s0;
    for (; panel != end; panel += STEP) {
        load_weights(&weights, w, second);
        multiply(&s0, panel, &weights);
        multiply(&s1, x1, &weights);
        multiply(&s2, x2, &weights);
        w += 2 * STEP;
        second += 2 * STEP;
        x1 += STEP;
        x2 += STEP;
    }
    put_sums(sums, 3, &s0);
    put_sums(sums + 1, 3, &s1);
    put_sums(sums + 2, 3, &s2);
}

#include "products16_image.h"

void rvp_products16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, int32_t *scratch, const void *parameters)
{
    p16_image(x, w, channels, y, scratch, parameters);
}
