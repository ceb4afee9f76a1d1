/* Sigmoid and tanh of 16-bit fixed-point numbers as gemmlowp computes them; Qm.n has m integer and n fraction bits.
 *
 * Both are computed from exp(-|x|), a polynomial times powers of e, and from 1 / (1 + exp(-|x|)) by Newton-Raphson steps. Saturations
 * of gemmlowp that no int16 input can reach are left out.
 */
#pragma once

#include <stdint.h>

#define S16_FUNCTION static inline __attribute__((always_inline))

enum { S16_EXP_EIGHTH = 28918, S16_THIRD = 10923, S16_GUESS = 23130, S16_SLOPE = -15420 };

/* Products in Q0.15 are rounded to the nearest, halves up: (a * b + 2^14) >> 15. A file may define S16_TOP(a, b, sum) instead: sum + ((a *
 * b + 2^31) >> 32), with one factor 2^17 times as large.
 */
#ifdef S16_TOP
#define S16_LARGE(a) ((int32_t)((uint32_t)(a) << 17))

/* |a| < 2^14. */
S16_FUNCTION int32_t s16_product(int32_t a, int32_t b)
{
    return S16_TOP(S16_LARGE(a), b, 0);
}

/* sum + a * c. A larger constant is 2^32 too low in 32 bits: the product lacks an `a`. */
S16_FUNCTION int32_t s16_scaled(int32_t a, int32_t c, int32_t sum)
{
    return c < 1 << 14 ? S16_TOP(a, S16_LARGE(c), sum) : S16_TOP(a, S16_LARGE(c), sum + a);
}

/* 1 - a * r in Q2.13, 2^17 times as large; 2^14 <= a < 2^15, so that a is 2^32 too low in 32 bits. */
S16_FUNCTION int32_t s16_error(int32_t a, int32_t r)
{
    return (1 << 30) - S16_LARGE(S16_TOP(S16_LARGE(a), r, r));
}

S16_FUNCTION int32_t s16_correction(int32_t r, int32_t error)
{
    return S16_TOP(error, r, 0);
}
#else
S16_FUNCTION int32_t s16_product(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
}

/* sum + a * c */
S16_FUNCTION int32_t s16_scaled(int32_t a, int32_t c, int32_t sum)
{
    return sum + s16_product(a, c);
}

/* 1 - a * r in Q2.13. */
S16_FUNCTION int32_t s16_error(int32_t a, int32_t r)
{
    return (1 << 13) - s16_product(a, r);
}

S16_FUNCTION int32_t s16_correction(int32_t r, int32_t error)
{
    return s16_product(r, error);
}
#endif

/* The smaller of x and 32767, for x >= -32768; a file may define it. */
#ifndef S16_MOST
#define S16_MOST s16_most
S16_FUNCTION int32_t s16_most(int32_t x)
{
    return x < INT16_MAX ? x : INT16_MAX;
}
#endif

/* -|x| */
S16_FUNCTION int32_t s16_negative(int32_t x)
{
    const int32_t mask = x >> 31;
    return mask - (x ^ mask);
}

/* exp(x) in Q0.15 for x below 0. x = part - rest, with part in [-1/4, 0) and rest a number of quarters: one bit for each power of e. */
S16_FUNCTION int32_t s16_exponential(int32_t x, int32_t integer_bits)
{
    static const int16_t powers[] = {25520, 19875, 12055, 4435, 600, 11, 0}; /* exp(-2^i), i = -2, -1, ... */
    const int32_t quarter = 1 << (13 - integer_bits);
    if (integer_bits > 5 && x < -(32 << (15 - integer_bits))) {
        return 0;
    }
    const int32_t part = x | -quarter;
    const int32_t t = part * (1 << integer_bits) + (1 << 12); /* the polynomial is around -1/8 */
    const int32_t t2 = s16_product(t, t);
    const int32_t sum = s16_scaled(((s16_product(t2, t2) + 2) >> 2) + s16_product(t, t2), S16_THIRD, t2);
    int32_t y = S16_MOST(s16_scaled(t + ((sum + 1) >> 1), S16_EXP_EIGHTH, S16_EXP_EIGHTH));
    const int32_t rest = (part - x) >> (13 - integer_bits); /* below 2^(integer_bits + 2) */
#pragma GCC unroll 7
    for (int32_t i = 0; i < 7; i++) {
        if (!(__builtin_constant_p(integer_bits) && i >= integer_bits + 2) && rest & 1 << i) {
            y = s16_scaled(y, powers[i], 0);
        }
    }
    return y;
}

/* 2 / (1 + a) in Q2.13 of a in Q0.15, from 48/17 - 32/17 * half on. */
S16_FUNCTION int32_t s16_reciprocal(int32_t a)
{
    const int32_t half = (a + (1 << 15)) >> 1;
    int32_t r = s16_scaled(half, S16_SLOPE, S16_GUESS);
#pragma GCC unroll 3
    for (int step = 0; step < 3; step++) {
        r += s16_correction(r, s16_error(half, r)) * 4;
    }
    return r;
}

/* The sigmoid in Q0.15 of x in Q3.12. */
S16_FUNCTION int32_t s16_sigmoid(int32_t x)
{
    if (x == 0) {
        return 1 << 14;
    }
    const int32_t y = S16_MOST(s16_reciprocal(s16_exponential(s16_negative(x), 3)) * 2);
    return x > 0 ? y : INT16_MAX - y;
}

/* tanh in Q0.15 of x with 0 to 6 integer bits. */
S16_FUNCTION int32_t s16_tanh(int32_t x, int32_t integer_bits)
{
    if (x == 0) {
        return 0;
    }
    const int32_t e = s16_exponential(s16_negative(x), integer_bits + 1);
    const int32_t y = S16_MOST((s16_reciprocal(e) - (1 << 13)) * 4);
    return x > 0 ? y : -y;
}
