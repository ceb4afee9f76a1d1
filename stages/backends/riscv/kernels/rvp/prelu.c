/* PRELU in 16-bit lanes. Values from zero up get the slope `one`, then all values are multiplied by their slopes. Each lane uses the
 * multiplier and the rounder for its sign. */
#include "prelu.h"

#include "lanes.h"

enum { W = RVP_WORD_BYTES };

/* Constants of values from zero up and below zero, the same in every lane. */
struct sides {
    rvp_word zero_point0, zero_point1, one;
    rvp_word multiplier_above, multiplier_below, rounder_above, rounder_below;
};

/* One product in each 32-bit lane, with both roundings. The mask is -1 for values below zero. For other values
 * the product is not negative and is not lowered. So their rounder may be the one without a second rounding: for |t| < 2^30,
 * (t * (2^31 - 1) + 2^30) >> 31 is t. */
RVP_INLINE rvp_word scaled(rvp_word product, rvp_word mask, const struct sides *s)
{
    const rvp_word t = rvp_kwmmul_u(product, rvp_select_bits(mask, s->multiplier_below, s->multiplier_above));
    return rvp_kwmmul_u(rvp_add32(t, rvp_sign32(t)), rvp_select_bits(mask, s->rounder_below, s->rounder_above));
}

/* Results of two 16-bit lanes for each 32 bits, in the upper half of each lane. */
RVP_INLINE rvp_word results(rvp_word values, rvp_word slopes, const struct sides *s, const struct epilogue *e)
{
    const rvp_word mask = rvp_scmplt16(values, 0), by = rvp_select_bits(mask, slopes, s->one);
    const rvp_word low = scaled(rvp_smbb16(values, by), rvp_pkbb16(mask, mask), s);
    const rvp_word high = scaled(rvp_smtt16(values, by), rvp_pktt16(mask, mask), s);
    return rvp_kslli16_8(rvp_add16(rvp_pkbb16(high, low), e->zero_point));
}

RVP_INLINE rvp_word prelu(rvp_word x0, rvp_word x1, const struct sides *s, const struct epilogue *e)
{
    const rvp_word even = results(rvp_sub16(rvp_sunpkd820(x0), s->zero_point0), rvp_sub16(rvp_sunpkd820(x1), s->zero_point1), s, e);
    const rvp_word odd = results(rvp_sub16(rvp_sunpkd831(x0), s->zero_point0), rvp_sub16(rvp_sunpkd831(x1), s->zero_point1), s, e);
    const rvp_word bytes = rvp_select_bits(rvp_splat16(0xff00), odd, even >> 8);
    return rvp_smin8(rvp_smax8(bytes, e->lowest), e->highest) ^ e->flip;
}

void rvp_prelu_s8(const void *x0, const void *x1, void *y, const int32_t *fields)
{
    const struct rvp_prelu *const p = (const struct rvp_prelu *)fields;
    const struct rvp_rows *const r = &p->rows;
    const struct sides s = {
        rvp_splat16(p->zero_point0), rvp_splat16(p->zero_point1), rvp_splat16(p->one),      rvp_splat32(p->multiplier0),
        rvp_splat32(p->multiplier1), rvp_splat32(p->rounder0),    rvp_splat32(p->rounder1),
    };
    const struct epilogue e = epilogue_of(0, 0, p->clip);
    const int8_t *row0 = x0, *row1 = x1;
    int8_t *row_y = y;
    for (int row = 0; row < r->rows; row++, row0 += r->row0, row1 += r->row1, row_y += r->count) {
        rvp_word repeated0, repeated1;
        struct operand_reader a = reader_of(row0, r->step0, &repeated0), b = reader_of(row1, r->step1, &repeated1);
        int8_t *to = row_y, *const last = to + ((r->count - 1) & -W);
        for (;;) {
            const rvp_word bytes = prelu(rvp_load(a.from) ^ e.flip, rvp_load(b.from) ^ e.flip, &s, &e);
            if (to == last) {
                store_last(to, bytes, r->count - (int)(last - row_y));
                break;
            }
            rvp_store(to, bytes);
            a.from += a.advance;
            b.from += b.advance;
            to += W;
        }
    }
}
