/* Quotients and products of floats by a scale from the bits of both, for cores that compute floats by software.
 *
 * The integer next to a quotient: with x = m * 2^e and scale = s * 2^f, both mantissas in [2^23, 2^24), the quotient is
 * m / s * 2^(e - f), and
 *
 *     p = (m * 2^7 * reciprocal) >> 32,  reciprocal = (2^55 - 1) / s,   is in (m / s * 2^30 - 2, m / s * 2^30]
 *
 * 2^30 * m / s is below 2^31, and a float that is nearest to the quotient is within 2^7 of that. So p tells the integer
 * unless a half is within 130 of it.
 */
#ifndef FIRMLINE_GENERIC_FLOAT_BITS_H
#define FIRMLINE_GENERIC_FLOAT_BITS_H

#include <stdint.h>

/* Whether floats are computed by software; functions that do so are called seldom then, and kept out of loops. */
#if (defined(__riscv) && !defined(__riscv_flen)) || defined(__SOFTFP__)
enum { SOFT_FLOAT = 1 };
#define WITH_FLOATS static __attribute__((noinline))
#else
enum { SOFT_FLOAT = 0 };
#define WITH_FLOATS static inline
#endif

enum {
    NEAR = 130,        /* how far from a half p is certain */
    SMALLEST = -1,     /* exponents e - f of quotients that are not simply 0 ... */
    LARGEST = 8,       /* ... nor beyond every 8-bit value, whatever the zero point */
    BEYOND = 1024,     /* what stands for the latter */
};

union float_bits {
    float value;
    uint32_t bits;
};

static inline uint32_t bits_of(float x)
{
    return (union float_bits){x}.bits;
}

/* The exponent, as in the bits of a float, of the smallest quotients by a scale; 0 for one so small or large that
 * exponents would leave those of normal floats. */
static inline uint32_t first_exponent(uint32_t scale)
{
    const uint32_t exponent = scale >> 23;
    return exponent < 3 || exponent + LARGEST >= 255 ? 0 : exponent + SMALLEST;
}

static inline uint32_t reciprocal_of(uint32_t scale)
{
    const uint32_t s = (scale & 0x7fffff) | 0x800000;
    uint32_t quotient = 0, rest = 0x7fffff; /* of 2^55 - 1, whose upper bits it has */
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

/* The integer next to x / scale, with its sign; *certain is 0 where only a division tells. `even`: halves are not
 * certain, as they go to the even number. */
static inline int32_t nearest(uint32_t x, uint32_t reciprocal, uint32_t first, int even, int *certain)
{
    const uint32_t exponent = x >> 23 & 255, order = exponent - first;
    const int32_t sign = (int32_t)x >> 31;
    *certain = 1;
    if (order > LARGEST - SMALLEST) {
        const int is_nan = (x & 0x7fffffff) > 0x7f800000;
        return exponent < first ? 0 : is_nan || sign ? -BEYOND : BEYOND;
    }
    const int32_t mantissa = (int32_t)(((x << 8) | UINT32_C(1) << 31) >> 1);
    /* By uintptr_t: 64-bit RISC-V widens a signed number for nothing, an unsigned one in two shifts; bit 31 is clear. */
    const uint32_t p = (uint32_t)((uint64_t)(uintptr_t)mantissa * reciprocal >> 32);
    const uint32_t shift = 31 - order, rounded = p + ((UINT32_C(1) << 30) >> order);
    const uint32_t magnitude = rounded >> shift;
    *certain = (rounded + NEAR) >> shift == (even ? (rounded - NEAR) >> shift : magnitude);
    return ((int32_t)magnitude ^ sign) - sign;
}

/* Whether `product` is exact for a scale: all results are normal floats, or 0. */
static inline int has_products(uint32_t scale)
{
    const uint32_t exponent = scale >> 23;
    return exponent >= 1 && exponent + 9 < 255;
}

/* x times a scale to the nearest float, halves to even, |x| < 2^8: the product of the mantissas has at most 32 bits. */
static inline float product(int32_t x, uint32_t scale)
{
    if (x == 0) {
        return 0.0f;
    }
    const uint32_t p = ((scale & 0x7fffff) | 0x800000) * (uint32_t)(x < 0 ? -x : x);
    uint32_t more = 0; /* bits beyond a mantissa's 24 */
    if (p >> 28 != 0) {
        more = 4;
    }
    if (p >> more >> 26 != 0) {
        more += 2;
    }
    if (p >> more >> 25 != 0) {
        more += 1;
    }
    if (p >> more >> 24 != 0) {
        more += 1;
    }
    const uint32_t whole = p >> more, rest = p - (whole << more), half = (UINT32_C(1) << more) >> 1;
    const uint32_t up = more != 0 && rest + (whole & 1) > half;
    const uint32_t exponent = (scale & 0x7f800000) + (more << 23);
    return (union float_bits){.bits = ((uint32_t)x & UINT32_C(1) << 31) | (exponent + (whole & 0x7fffff) + up)}.value;
}

#endif
