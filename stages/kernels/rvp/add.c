#include "add.h"

#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };

/* 16-bit lanes: the same value in each. */
RVP_INLINE rvp_word splat16(int value)
{
    return (rvp_word)(uint16_t)value * (rvp_word)0x0001000100010001u;
}

/* An operand of the sum. */
struct operand {
    rvp_word zero_point; /* 16-bit lanes */
    rvp_word multiplier, rounder; /* 32-bit lanes */
    int rounds;
};

/* 32-bit lanes of one operand: element j of each four neighbours is in lane[j]. */
struct lanes {
    rvp_word lane[4];
};

/* (x - zero_point) << left_shift, times the multiplier, is one 32x16-bit product that keeps the upper 32 of 48 bits,
 * rounded:
 *
 *   SRDHM(v << 20, m) = (v * m * 2^20 + 2^30) >> 31 = ((v << 5) * m + 2^15) >> 16
 */
RVP_INLINE struct lanes scale(rvp_word x, const struct operand *o, int shift)
{
    const rvp_word even = rvp_sll16(rvp_sub16(rvp_sunpkd820(x), o->zero_point), (rvp_word)shift);
    const rvp_word odd = rvp_sll16(rvp_sub16(rvp_sunpkd831(x), o->zero_point), (rvp_word)shift);
    struct lanes t = {{
        rvp_smmwb_u(o->multiplier, even),
        rvp_smmwb_u(o->multiplier, odd),
        rvp_smmwt_u(o->multiplier, even),
        rvp_smmwt_u(o->multiplier, odd),
    }};
    if (o->rounds) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            t.lane[j] = rvp_kwmmul_u(t.lane[j], o->rounder);
        }
    }
    return t;
}

/* Back to the output's scale: both roundings, halves away from zero, and four bytes into each 32-bit lane. */
RVP_INLINE rvp_word requantize(struct lanes t, rvp_word multiplier, rvp_word rounder, rvp_word zero_point)
{
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const rvp_word high = rvp_kwmmul_u(t.lane[j], multiplier);
        t.lane[j] = rvp_kwmmul_u(rvp_add32(high, rvp_sign32(high)), rounder);
    }
    const rvp_word even = rvp_kslli16_8(rvp_add16(rvp_pkbb16(t.lane[2], t.lane[0]), zero_point));
    const rvp_word odd = rvp_kslli16_8(rvp_add16(rvp_pkbb16(t.lane[3], t.lane[1]), zero_point));
    return rvp_select_bits(splat16(0xff00), odd, even >> 8);
}

RVP_INLINE void add(const int8_t *x0, const int8_t *x1, int8_t *y, int count, const struct rvp_add *p, int rounds0,
                    int rounds1, int subtracts)
{
    const struct operand first = {
        splat16(p->zero_point0), rvp_splat32(p->multiplier0), rvp_splat32(p->rounder0), rounds0};
    const struct operand second = {
        splat16(p->zero_point1), rvp_splat32(p->multiplier1), rvp_splat32(p->rounder1), rounds1};
    const rvp_word multiplier = rvp_splat32(p->multiplier), rounder = rvp_splat32(p->rounder);
    const rvp_word zero_point = splat16((int8_t)p->clip), flip = rvp_splat8(p->clip >> 24);
    const rvp_word lowest = rvp_splat8(p->clip >> 8), highest = rvp_splat8(p->clip >> 16);
    const int shift = p->shift;
    for (; count > 0; count -= W) {
        struct lanes t0 = scale(rvp_load(x0) ^ flip, &first, shift);
        const struct lanes t1 = scale(rvp_load(x1) ^ flip, &second, shift);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            t0.lane[j] = subtracts ? rvp_ksub32(t0.lane[j], t1.lane[j]) : rvp_kadd32(t0.lane[j], t1.lane[j]);
        }
        rvp_word out = requantize(t0, multiplier, rounder, zero_point);
        out = rvp_smin8(rvp_smax8(out, lowest), highest) ^ flip;
        if (count < W) {
            for (; count > 0; count--) {
                *y++ = (int8_t)out;
                out >>= 8;
            }
            return;
        }
        rvp_store(y, out);
        x0 += W;
        x1 += W;
        y += W;
    }
}

/* One loop for each set of second roundings: usually one input has none. */
RVP_INLINE void choose(const void *x0, const void *x1, void *y, int count, const int32_t *parameters, int subtracts)
{
    const struct rvp_add *const p = (const struct rvp_add *)parameters;
    if (p->rounder0 != 0 && p->rounder1 != 0) {
        add(x0, x1, y, count, p, 1, 1, subtracts);
    } else if (p->rounder0 != 0) {
        add(x0, x1, y, count, p, 1, 0, subtracts);
    } else if (p->rounder1 != 0) {
        add(x0, x1, y, count, p, 0, 1, subtracts);
    } else {
        add(x0, x1, y, count, p, 0, 0, subtracts);
    }
}

void rvp_add_s8(const void *x0, const void *x1, void *y, int count, const int32_t *parameters)
{
    choose(x0, x1, y, count, parameters, 0);
}

void rvp_sub_s8(const void *x0, const void *x1, void *y, int count, const int32_t *parameters)
{
    choose(x0, x1, y, count, parameters, 1);
}
