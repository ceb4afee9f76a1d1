#include "mean_sums.h"

enum { W = RVP_WORD_BYTES };

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
