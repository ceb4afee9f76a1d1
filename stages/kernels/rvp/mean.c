#include "mean.h"

#include "lanes.h"

enum { W = RVP_WORD_BYTES };

/* Adds a register of two pixels each: bytes of one channel are brought together, and added up by a product.
 *
 *     a3 a2 a1 a0   b3 b2 b1 b0   ->   b1 b0 a1 a0   b3 b2 a3 a2   times   0 1 0 1   and   1 0 1 0
 */
RVP_INLINE void add_pixels(struct lanes *s, rvp_word a, rvp_word b, int is_unsigned)
{
    const rvp_word low = rvp_splat16(0x0001), high = rvp_splat16(0x0100);
    const rvp_word lower = rvp_pkbb16(b, a), upper = rvp_pktt16(b, a);
    s->lane[0] = is_unsigned ? rvp_smaqa_su(s->lane[0], low, lower) : rvp_smaqa(s->lane[0], low, lower);
    s->lane[1] = is_unsigned ? rvp_smaqa_su(s->lane[1], high, lower) : rvp_smaqa(s->lane[1], high, lower);
    s->lane[2] = is_unsigned ? rvp_smaqa_su(s->lane[2], low, upper) : rvp_smaqa(s->lane[2], low, upper);
    s->lane[3] = is_unsigned ? rvp_smaqa_su(s->lane[3], high, upper) : rvp_smaqa(s->lane[3], high, upper);
}

/* The sums of `registers` neighbours. */
RVP_INLINE void add_window(struct lanes *s, const int8_t *x, const struct rvp_mean *p, int registers, int is_unsigned)
{
    const int step = p->column_step, whole = p->columns & -2;
    for (int row = p->rows; row > 0; row--, x += p->row_step) {
        const int8_t *from = x, *const end = x + whole * step;
        for (; from != end; from += 2 * step) {
#pragma GCC unroll 2
            for (int n = 0; n < registers; n++) {
                add_pixels(&s[n], rvp_load(from + n * W), rvp_load(from + step + n * W), is_unsigned);
            }
        }
        if (p->columns != whole) {
#pragma GCC unroll 2
            for (int n = 0; n < registers; n++) {
                add_pixels(&s[n], rvp_load(from + n * W), 0, is_unsigned);
            }
        }
    }
}

RVP_INLINE void mean(const int8_t *x, int8_t *y, int count, const struct rvp_mean *p, int is_unsigned)
{
    const struct epilogue e = epilogue_of(p->multiplier, p->rounder, p->clip);
    const rvp_word start = rvp_splat32(-p->offset);
    const int8_t *const end = y + count;
    while (y != end) {
        struct lanes s[2] = {{{start, start, start, start}}, {{start, start, start, start}}};
        if (end - y == W) {
            add_window(s, x, p, 1, is_unsigned);
            rvp_store(y, finish(s[0], &e));
            return;
        }
        add_window(s, x, p, 2, is_unsigned);
        rvp_store(y, finish(s[0], &e));
        rvp_store(y + W, finish(s[1], &e));
        x += 2 * W;
        y += 2 * W;
    }
}

void rvp_mean_s8(const void *x, void *y, int count, const int32_t *fields)
{
    mean(x, y, count, (const struct rvp_mean *)fields, 0);
}

void rvp_mean_u8(const void *x, void *y, int count, const int32_t *fields)
{
    mean(x, y, count, (const struct rvp_mean *)fields, 1);
}
