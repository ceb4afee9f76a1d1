/* Sigmoid and tanh of 16-bit fixed-point numbers on RV64, two at a time in 32-bit lanes. The steps are those of include/sigmoid16.h.
 *
 * A product in Q0.15 is the upper half of the product by a factor that is 2^17 times as large: smmul.u rounds it as gemmlowp does.
 * Steps that depend on a number's value are selected by masks.
 */
#pragma once

#include "rvp_intrinsics.h"

#if __riscv_xlen == 64 /* RV32 has one lane and uses sigmoid16.h */

/* A constant in both lanes. */
#define S16_BOTH(value) ((rvp_word)((uint64_t)(uint32_t)(value)*0x100000001u))
/* A factor in Q0.15; from 2^14 on it is 2^32 too low, so that its product lacks the other factor. */
#define S16_FACTOR(value) S16_BOTH((uint32_t)(value) << 17)

/* Constants in memory: loading them is faster than three or four instructions for each. The entry for exp(0) is a number whose
 * reciprocal is exactly 2^13, for sigmoid and tanh of 0.
 */
struct s16_constants {
    rvp_word middle, third, eighth, exp_eighth;      /* of the polynomial around -1/8 */
    rvp_word quarter, half, one, two, four, eight;   /* exp(-2^i) */
    rvp_word most, exp_0;                            /* quarters; the entry for exp(0) */
    rvp_word unit, slope, guess, two_to_30;          /* of the reciprocal, from 48/17 - 32/17 * half on */
    rvp_word largest, two_to_13;
};
static const struct s16_constants S16_CONSTANTS = {
    S16_BOTH(1 << 12),   S16_FACTOR(10923), S16_FACTOR(28918), S16_BOTH(28918),      S16_FACTOR(25520), S16_FACTOR(19875),
    S16_FACTOR(12055),   S16_FACTOR(4435),  S16_FACTOR(600),   S16_FACTOR(11),       S16_BOTH(127),     S16_BOTH(32760),
    S16_BOTH(1 << 15),   S16_FACTOR(-15420), S16_BOTH(23130),  S16_BOTH(1 << 30),    S16_BOTH(32767),   S16_BOTH(1 << 13),
};

/* The constants. Their values are hidden from the compiler. */
RVP_INLINE const struct s16_constants *s16_constants(void)
{
    const struct s16_constants *c = &S16_CONSTANTS;
    __asm__("" : "+r"(c));
    return c;
}

/* y, times a power of e in the lanes where `bit` is negative. From 2^14 on its factor is 2^32 too low. */
RVP_INLINE rvp_word s16_power(rvp_word y, rvp_word bit, rvp_word factor, int is_low)
{
    const rvp_word product = rvp_smmul_u(y, factor);
    return rvp_select_bits(rvp_sign32(bit), is_low ? rvp_add32(product, y) : product, y);
}

/* exp(x) in Q0.15 of x up to 0. The number of quarters has at most `bits` bits, 5 to 7, or more and is large then. */
RVP_INLINE rvp_word s16_exponentials(rvp_word x, int32_t integer_bits, int bits, const struct s16_constants *c)
{
    const rvp_word part = x | rvp_splat32(-(1 << (13 - integer_bits)));
    const rvp_word t = rvp_add32(rvp_sll32(part, (rvp_word)integer_bits), c->middle);
    const rvp_word large = rvp_shift_left_17(t);
    const rvp_word t2 = rvp_smmul_u(large, t), t3 = rvp_smmul_u(large, t2);
    const rvp_word t4 = rvp_smmul_u(rvp_shift_left_17(t2), t2);
    const rvp_word sum = rvp_add32(rvp_smmul_u(rvp_add32(rvp_quarter(t4), t3), c->third), t2);
    const rvp_word a = rvp_add32(t, rvp_half(sum));
    rvp_word y = rvp_sclip32_15(rvp_add32(rvp_add32(rvp_smmul_u(a, c->eighth), a), c->exp_eighth));
    const rvp_word rest = rvp_sra32(rvp_sub32(part, x), (rvp_word)(13 - integer_bits)); /* quarters; -1 for x = 0 */
    y = s16_power(y, rvp_bit_0(rest), c->quarter, 1);
    y = s16_power(y, rvp_bit_1(rest), c->half, 1);
    y = s16_power(y, rvp_bit_2(rest), c->one, 0);
    y = s16_power(y, rvp_bit_3(rest), c->two, 0);
    y = s16_power(y, rvp_bit_4(rest), c->four, 0);
    if (bits > 5) {
        y = s16_power(y, rvp_bit_5(rest), c->eight, 0);
    }
    if (bits > 6) { /* exp(-16) is 0, and so is exp of more than 127 quarters */
        y &= ~rvp_sign32(rvp_bit_6(rest) | rvp_sub32(c->most, rest));
    }
    return rvp_select_bits(rvp_sign32(rest), c->exp_0, y);
}

/* 2 / (1 + a) in Q2.13 of a in Q0.15. */
RVP_INLINE rvp_word s16_reciprocals(rvp_word a, const struct s16_constants *c)
{
    const rvp_word half = rvp_srai32_1(rvp_add32(a, c->unit)), large = rvp_slli32_16(half);
    rvp_word r = rvp_add32(rvp_smmul_u(half, c->slope), c->guess);
#pragma GCC unroll 3
    for (int step = 0; step < 3; step++) {
        const rvp_word product = rvp_smmul_u(large, rvp_add32(r, r));
        const rvp_word error = rvp_sub32(c->two_to_30, rvp_shift_left_17(product));
        r = rvp_add32(r, rvp_shift_left_2(rvp_smmul_u(error, r)));
    }
    return r;
}

/* -|x| of lanes whose signs are `sign`. */
RVP_INLINE rvp_word s16_below(rvp_word x, rvp_word sign)
{
    return rvp_sub32(x ^ ~sign, ~sign);
}

/* The sigmoid in Q0.15 of x in Q3.12. */
RVP_INLINE rvp_word s16_sigmoids(rvp_word x, const struct s16_constants *c)
{
    const rvp_word sign = rvp_sign32(x), r = s16_reciprocals(s16_exponentials(s16_below(x, sign), 3, 5, c), c);
    const rvp_word y = rvp_sclip32_15(rvp_add32(r, r));
    return y ^ (sign & c->largest); /* 2^15 - 1 - y of a negative x */
}

/* tanh in Q0.15 of x with `integer_bits` integer bits, 0 to 6; `bits` as in s16_exponentials: integer_bits + 3. */
RVP_INLINE rvp_word s16_tanhs(rvp_word x, int32_t integer_bits, int bits, const struct s16_constants *c)
{
    const rvp_word sign = rvp_sign32(x), e = s16_exponentials(s16_below(x, sign), integer_bits + 1, bits, c);
    const rvp_word y = rvp_sclip32_15(rvp_shift_left_2(rvp_sub32(s16_reciprocals(e, c), c->two_to_13)));
    return rvp_sub32(y ^ sign, sign);
}

#endif
