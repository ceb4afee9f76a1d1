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

#if __riscv_xlen == 64
/* Adds four bytes of four pixels each. A register has the bytes of two pixels. */
RVP_INLINE void add_four(struct lanes *s, const int8_t *a, int step, int is_unsigned)
{
    const int8_t *const b = a + step, *const c = b + step, *const d = c + step;
    add_pixels(s, rvp_pack(rvp_load_lane(a), rvp_load_lane(b)), rvp_pack(rvp_load_lane(c), rvp_load_lane(d)),
               is_unsigned);
}

/* The sums of `units` neighbours of four bytes, in lanes of two pixels. */
RVP_INLINE void add_quads(struct lanes *s, const int8_t *x, const struct rvp_mean *p, int units, int is_unsigned)
{
    const int step = p->column_step, whole = p->columns & -4;
    for (int row = p->rows; row > 0; row--, x += p->row_step) {
        const int8_t *from = x, *const end = x + whole * step;
        for (; from != end; from += 4 * step) {
#pragma GCC unroll 2
            for (int n = 0; n < units; n++) {
                add_four(&s[n], from + n * 4, step, is_unsigned);
            }
        }
        if ((p->columns & 2) != 0) {
#pragma GCC unroll 2
            for (int n = 0; n < units; n++) {
                const rvp_word two = rvp_pack(rvp_load_lane(from + n * 4), rvp_load_lane(from + step + n * 4));
                add_pixels(&s[n], two, 0, is_unsigned);
            }
            from += 2 * step;
        }
        if ((p->columns & 1) != 0) {
#pragma GCC unroll 2
            for (int n = 0; n < units; n++) {
                add_pixels(&s[n], rvp_load_lane(from + n * 4), 0, is_unsigned);
            }
        }
    }
}

/* Both lanes of a together, below those of b. */
RVP_INLINE struct lanes joined(const struct lanes *a, const struct lanes *b)
{
    struct lanes s;
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        s.lane[j] = rvp_add32(rvp_pack(a->lane[j], b->lane[j]), rvp_packu(a->lane[j], b->lane[j]));
    }
    return s;
}

RVP_INLINE void mean_quads(const int8_t *x, int8_t *y, int count, const struct rvp_mean *p, int is_unsigned)
{
    const struct epilogue e = epilogue_of(p->multiplier, p->rounder, p->clip);
    const rvp_word start = (uint32_t)-p->offset; /* of one lane; adds both sums into it */
    const int8_t *const end = y + count;
    while (y != end) {
        struct lanes s[2] = {{{start, start, start, start}}, {{start, start, start, start}}};
        if (end - y == 4) {
            add_quads(s, x, p, 1, is_unsigned);
            rvp_store_lane(y, finish(joined(&s[0], &s[1]), &e));
            return;
        }
        add_quads(s, x, p, 2, is_unsigned);
        const rvp_word bytes = finish(joined(&s[0], &s[1]), &e);
        rvp_store_lane(y, bytes);
        rvp_store_lane(y + 4, bytes >> 32);
        x += W;
        y += W;
    }
}

void rvp_mean_quads_s8(const void *x, void *y, int count, const int32_t *fields)
{
    mean_quads(x, y, count, (const struct rvp_mean *)fields, 0);
}

void rvp_mean_quads_u8(const void *x, void *y, int count, const int32_t *fields)
{
    mean_quads(x, y, count, (const struct rvp_mean *)fields, 1);
}
#endif
