/* Both come from exp(-|x|), a polynomial times powers of e, and 1 / (1 + exp(-|x|)) by Newton and Raphson. */
#include "sigmoid16.h"

#include "requantize.h"

enum { EIGHTH = 1 << 12, EXP_EIGHTH = 28918, THIRD = 10923, GUESS = 23130, SLOPE = -15420 };

/* a * b in Q0.15, to the nearest, halves up. */
static int32_t product(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
}

/* exp(x) in Q0.15 of x up to 0. x is part - rest: part in [-1/4, 0), rest some quarters, a bit for each power of e. */
static int32_t exponential(int32_t x, int32_t integer_bits)
{
    static const int16_t powers[] = {25520, 19875, 12055, 4435, 600, 11, 0}; /* exp(-2^i), i = -2, -1, ... */
    const int32_t quarter = 1 << (13 - integer_bits);
    if (x == 0) {
        return INT16_MAX;
    }
    if (integer_bits > 5 && x < -(32 << (15 - integer_bits))) {
        return 0;
    }
    const int32_t part = (x & (quarter - 1)) - quarter;
    const int32_t t = part * (1 << integer_bits) + EIGHTH; /* the polynomial is one around -1/8 */
    const int32_t t2 = product(t, t);
    const int32_t cubic = product(fl_divide_by_pot(product(t2, t2), 2) + product(t2, t), THIRD);
    int32_t y = EXP_EIGHTH + product(EXP_EIGHTH, t + fl_divide_by_pot(cubic + t2, 1));
    y = y < INT16_MAX ? y : INT16_MAX;
    const int32_t rest = (part - x) / quarter;
    for (int32_t i = 0; rest >> i; i++) {
        y = rest >> i & 1 ? product(y, powers[i]) : y;
    }
    return y;
}

/* 2 / (1 + a) in Q2.13 of a in Q0.15, from 48/17 - 32/17 * half on. */
static int32_t reciprocal(int32_t a)
{
    const int32_t half = (a + (1 << 15)) >> 1;
    int32_t r = GUESS + product(half, SLOPE);
    for (int step = 0; step < 3; step++) {
        r += fl_clamp(product(r, (1 << 13) - product(half, r)) * 4, INT16_MIN, INT16_MAX);
    }
    return r;
}

int32_t fl_sigmoid16(int32_t x)
{
    if (x == 0) {
        return 1 << 14;
    }
    const int32_t y = fl_clamp(reciprocal(exponential(x < 0 ? x : -x, 3)) * 2, INT16_MIN, INT16_MAX);
    return x > 0 ? y : INT16_MAX - y;
}

int32_t fl_tanh16(int32_t x, int32_t integer_bits)
{
    if (x == 0) {
        return 0;
    }
    const int32_t e = exponential(x < 0 ? x : -x, integer_bits + 1);
    const int32_t y = fl_clamp((reciprocal(e) - (1 << 13)) * 4, INT16_MIN, INT16_MAX);
    return x < 0 ? -y : y;
}
