/* Quotients and products of floats by a scale, computed from the bits of both, for cores without an FPU.
 *
 * The rounded quotient: with x = m * 2^e and scale = s * 2^f, both mantissas in [2^23, 2^24), the quotient is
 * m / s * 2^(e - f), and
 *
 *     p = (m * 2^7 * reciprocal) >> 32,  reciprocal = (2^55 - 1) / s,   is in (m / s * 2^30 - 2, m / s * 2^30]
 *
 * 2^30 * m / s is below 2^31, and the float nearest to the quotient is within 2^7 of it. So p gives the integer unless a half is
 * within 130 of p. On 64 bits there is one more bit: (m * 2^40 * reciprocal) >> 64 is in (m / s * 2^31 - 2, m / s * 2^31], and
 * the nearest float is within 2^8 of that.
 */
#pragma once

#include <stdint.h>

/* Whether floats are computed by software. Then functions with float arithmetic are called rarely, and not in loops. */
#if (defined(__riscv) && !defined(__riscv_flen)) || defined(__SOFTFP__)
enum { SOFT_FLOAT = 1 };
#define WITH_FLOATS static __attribute__((noinline))
#else
enum { SOFT_FLOAT = 0 };
#define WITH_FLOATS static inline
#endif

#if UINTPTR_MAX > UINT32_MAX
enum { FRACTION = 31, NEAR = 258 }; /* bits of p below the integer, and the distance from a half at which p is certain */
__extension__ typedef unsigned __int128 two_registers;
#else
enum { FRACTION = 30, NEAR = 130 };
#endif

enum {
    SMALLEST = -1,     /* exponents e - f of quotients that are not simply 0 ... */
    LARGEST = 8,       /* ... nor beyond every 8-bit value, whatever the zero point */
    BEYOND = 1024,     /* the replacement for larger quotients */
};

union float_bits {
    float value;
    uint32_t bits;
    int32_t with_sign;
};

static inline uint32_t bits_of(float x)
{
    return (union float_bits){x}.bits;
}

/* The exponent, as in the bits of a float, of the smallest quotients by a scale; 0 for a scale so small or large that exponents would not
 * be those of normal floats.
 */
static inline uint32_t first_exponent(uint32_t scale)
{
    const uint32_t exponent = scale >> 23;
    return exponent < 3 || exponent + LARGEST >= 255 ? 0 : exponent + SMALLEST;
}

static inline uint32_t reciprocal_of(uint32_t scale)
{
    const uint32_t s = (scale & 0x7fffff) | 0x800000;
    uint32_t quotient = 0, rest = 0x7fffff; /* the dividend's upper bits; all bits of 2^55 - 1 are ones */
    for (int bit = 0; bit < 32; bit++) {
        rest = rest << 1 | 1;
        quotient <<= 1;
        if (rest >= s) {
            rest -= s;
            quotient |= 1;
        }
    }
    return quotient;
}

/* Constants for the conversion of floats to integers: a reciprocal, and the first exponent (0 if only divisions work). */
struct quantization {
    uintptr_t reciprocal, first;
    intptr_t zero_point, low, high;
};

static inline struct quantization quantization_of(float scale, int32_t zero_point, int32_t low, int32_t high)
{
    const uintptr_t first = SOFT_FLOAT ? first_exponent(bits_of(scale)) : 0;
    return (struct quantization){first != 0 ? reciprocal_of(bits_of(scale)) : 0, first, zero_point, low, high};
}

/* The integer nearest to x / scale. *certain is 0 if a division is needed. `even`: halves are not certain,
 * because they are rounded to the even number. x is sign-extended to the width of a register, so that nothing
 * has to be widened. */
static inline intptr_t nearest(uintptr_t x, const struct quantization *q, int even, int *certain)
{
    const uintptr_t exponent = x >> 23 & 255, order = exponent - q->first;
    const intptr_t sign = (intptr_t)x >> 31; /* 0 or -1: bits above 31 are equal to bit 31 */
    *certain = 1;
    if (order > LARGEST - SMALLEST) {
        const int is_nan = (x & 0x7fffffff) > 0x7f800000;
        return exponent < q->first ? 0 : is_nan || sign ? -BEYOND : BEYOND;
    }
#if UINTPTR_MAX > UINT32_MAX
    const uintptr_t p = (uintptr_t)((two_registers)(x << 40 | (uintptr_t)1 << 63) * q->reciprocal >> 64);
#else
    const uintptr_t p = (uintptr_t)((uint64_t)((x << 8 | UINT32_C(1) << 31) >> 1) * q->reciprocal >> 32);
#endif
    const uintptr_t shift = FRACTION + 1 - order, rounded = p + ((uintptr_t)1 << FRACTION >> order);
    const uintptr_t magnitude = rounded >> shift;
    *certain = (rounded + NEAR) >> shift == (even ? (rounded - NEAR) >> shift : magnitude);
    return ((intptr_t)magnitude ^ sign) - sign;
}

/* Quantizes floats up to the first uncertain one; returns their number. Functions that divide are not called here, so
 * that all constants stay in registers. */
static inline int32_t certain_run(const float *x, uint8_t *y, int32_t count, int32_t step, const struct quantization *given,
                                  int even)
{
    const struct quantization q = *given; /* local copy: y may alias it */
    uint8_t *to = y;
    for (uint8_t *const end = y + count; to != end; to++) {
        int certain;
        const intptr_t whole = nearest((uintptr_t)(intptr_t)(union float_bits){*x}.with_sign, &q, even, &certain) + q.zero_point;
        if (!certain) {
            break;
        }
        *to = (uint8_t)(whole < q.low ? q.low : whole > q.high ? q.high : whole);
        x += step;
    }
    return (int32_t)(to - y);
}

/* Whether `product` is exact for a scale: all results are normal floats, or 0. */
static inline int has_products(uint32_t scale)
{
    const uint32_t exponent = scale >> 23;
    return exponent >= 1 && exponent + 9 < 255;
}

/* x times a scale to the nearest float, halves to even, |x| < 2^8: the product of the mantissas has 24 to 32 bits. It is shifted
 * to 32. A float has the upper 24 of them; the first one counts as one of the exponent. */
static inline float product(int32_t x, uint32_t scale)
{
    if (x == 0) {
        return 0.0f;
    }
    uintptr_t p = (uintptr_t)((scale & 0x7fffff) | 0x800000) * (uintptr_t)(x < 0 ? -x : x);
    uint32_t exponent = (scale & 0x7f800000) + (7 << 23);
    if (p >> 28 == 0) {
        p <<= 4;
        exponent -= 4 << 23;
    }
    if (p >> 30 == 0) {
        p <<= 2;
        exponent -= 2 << 23;
    }
    if (p >> 31 == 0) {
        p <<= 1;
        exponent -= 1 << 23;
    }
    if (p >> 31 == 0) {
        p <<= 1;
        exponent -= 1 << 23;
    }
    const uint32_t whole = (uint32_t)(p >> 8), up = ((uint32_t)(p & 255) + (whole & 1) + 127) >> 8;
    return (union float_bits){.bits = ((uint32_t)x & UINT32_C(1) << 31) | (exponent + whole + up)}.value;
}
