/* Softmax of one row, in the fixed-point arithmetic of the reference (gemmlowp); Qm.n has m integer and n fraction
 * bits. */
#include "softmax.h"

#include "elements.h"
#include "fixed_point.h"
#include "reciprocal.h"

/* fl_high_mul of two values that are not negative. */
static inline uint32_t unsigned_high_mul(uint32_t a, int32_t b)
{
#if UINTPTR_MAX > UINT32_MAX
    return (uint32_t)(((uint64_t)a * (uint32_t)b + (1u << 30)) >> 31);
#else
    const uint64_t product = (uint64_t)a * ((uint32_t)b << 1);
    return (uint32_t)(product >> 32) + ((uint32_t)product >> 31);
#endif
}

/* The entry of an element; `row` is the entry of element 0. */
INLINE uint32_t entry(const uint32_t *row, const uint8_t *x, int is_unsigned)
{
    return *(row - (intptr_t)load(x, is_unsigned));
}

/* Exponentials are in [0, 1), the largest nearly 1. So parts are not negative, and can only exceed the upper bound.
 */
INLINE void softmax(const uint8_t *x, const int32_t *exp, uint8_t *y, int32_t count, int32_t x_step, int32_t y_step,
                    int is_unsigned)
{
    const int32_t lowest = is_unsigned ? 0 : -128;
    const uint8_t *const end = x + count * x_step;
    intptr_t highest = lowest;
    for (const uint8_t *from = x; from != end; from += x_step) {
        const intptr_t value = load(from, is_unsigned);
        highest = value > highest ? value : highest;
    }
    const uint32_t *const row = (const uint32_t *)exp + highest;
    uintptr_t total = 0; /* Q12.19 in the low 32 bits; as wide as a register, so that steps need not narrow it */
    for (const uint8_t *from = x; from != end; from += x_step) {
        total += (entry(row, from, is_unsigned) + (1 << 11)) >> 12;
    }
    const uint32_t sum = (uint32_t)total;
    const int32_t zeros = fl_leading_zeros(sum);
    const int32_t shift = 12 - zeros + 23;
    const int32_t scale = fl_reciprocal((int32_t)((sum << zeros) >> 1));
    const int32_t right = shift > 31 ? 31 : shift;
    const uint32_t half = shift > 31 ? 0 : UINT32_C(1) << (right - 1); /* parts are below 2^31: 0 without a half */
    for (const uint8_t *from = x; from != end; from += x_step) {
        const uint32_t value = (unsigned_high_mul(entry(row, from, is_unsigned), scale) + half) >> right;
        *y = (uint8_t)((value > 255 ? 255 : value) + (uint32_t)lowest);
        y += y_step;
    }
}

void fl_softmax_s8(const int8_t *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step)
{
    softmax((const uint8_t *)x, exp, y, count, x_step, y_step, 0);
}

void fl_softmax_u8(const uint8_t *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step)
{
    softmax(x, exp, y, count, x_step, y_step, 1);
}
