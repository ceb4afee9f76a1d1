#include "add.h"

#include "lanes.h"

enum { W = RVP_WORD_BYTES };

/* An operand of the sum. */
struct operand {
    rvp_word zero_point; /* 16-bit lanes */
    rvp_word multiplier, rounder; /* 32-bit lanes */
};

/* (x - zero_point) << left_shift, times the multiplier, is one 32x16-bit product that keeps the upper 32 of 48 bits,
 * rounded:
 *
 *   SRDHM(v << 20, m) = (v * m * 2^20 + 2^30) >> 31 = ((v << 5) * m + 2^15) >> 16
 */
RVP_INLINE struct lanes scale(rvp_word x, const struct operand *o, int shift, int rounds)
{
    const rvp_word even = rvp_sll16(rvp_sub16(rvp_sunpkd820(x), o->zero_point), (rvp_word)shift);
    const rvp_word odd = rvp_sll16(rvp_sub16(rvp_sunpkd831(x), o->zero_point), (rvp_word)shift);
    struct lanes t = {{
        rvp_smmwb_u(o->multiplier, even),
        rvp_smmwb_u(o->multiplier, odd),
        rvp_smmwt_u(o->multiplier, even),
        rvp_smmwt_u(o->multiplier, odd),
    }};
    if (rounds) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            t.lane[j] = rvp_kwmmul_u(t.lane[j], o->rounder);
        }
    }
    return t;
}

/* The sum of registers of elements. The sign, and whether inputs have second roundings, are literals. */
struct sum {
    struct operand first, second;
    int shift, rounds0, rounds1, subtracts;
    struct epilogue epilogue;
};

RVP_INLINE rvp_word sum(rvp_word x0, rvp_word x1, const struct sum *s)
{
    struct lanes t0 = scale(x0 ^ s->epilogue.flip, &s->first, s->shift, s->rounds0);
    const struct lanes t1 = scale(x1 ^ s->epilogue.flip, &s->second, s->shift, s->rounds1);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t0.lane[j] = s->subtracts ? rvp_ksub32(t0.lane[j], t1.lane[j]) : rvp_kadd32(t0.lane[j], t1.lane[j]);
    }
    return finish(t0, &s->epilogue);
}

RVP_INLINE void add(const int8_t *row0, const int8_t *row1, int8_t *row_y, const struct rvp_add *p, int rounds0,
                    int rounds1, int subtracts)
{
    const struct rvp_rows *const r = &p->rows;
    const struct sum s = {
        {rvp_splat16(p->zero_point0), rvp_splat32(p->multiplier0), rvp_splat32(p->rounder0)},
        {rvp_splat16(p->zero_point1), rvp_splat32(p->multiplier1), rvp_splat32(p->rounder1)},
        p->shift,
        rounds0,
        rounds1,
        subtracts,
        epilogue_of(p->multiplier, p->rounder, p->clip),
    };
    for (int row = 0; row < r->rows; row++, row0 += r->row0, row1 += r->row1, row_y += r->count) {
        rvp_word repeated0, repeated1;
        struct operand_reader a = reader_of(row0, r->step0, &repeated0), b = reader_of(row1, r->step1, &repeated1);
        int8_t *to = row_y, *const last = to + ((r->count - 1) & -W);
        for (;;) {
            const rvp_word bytes = sum(rvp_load(a.from), rvp_load(b.from), &s);
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

/* One loop for each set of second roundings: usually one input has none. */
RVP_INLINE void choose(const void *x0, const void *x1, void *y, const int32_t *fields, int subtracts)
{
    const struct rvp_add *const p = (const struct rvp_add *)fields;
    if (p->rounder0 != 0 && p->rounder1 != 0) {
        add(x0, x1, y, p, 1, 1, subtracts);
    } else if (p->rounder0 != 0) {
        add(x0, x1, y, p, 1, 0, subtracts);
    } else if (p->rounder1 != 0) {
        add(x0, x1, y, p, 0, 1, subtracts);
    } else {
        add(x0, x1, y, p, 0, 0, subtracts);
    }
}

void rvp_add_s8(const void *x0, const void *x1, void *y, const int32_t *fields)
{
    choose(x0, x1, y, fields, 0);
}

void rvp_sub_s8(const void *x0, const void *x1, void *y, const int32_t *fields)
{
    choose(x0, x1, y, fields, 1);
}
