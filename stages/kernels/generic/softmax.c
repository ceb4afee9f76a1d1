/* Softmax of one row, in the fixed-point arithmetic of the reference (gemmlowp); Qm.n has m integer and n fraction
 * bits. */
#include "softmax.h"

#include "elements.h"
#include "fixed_point.h"
#include "requantize.h"

/* 1 / (2 * half) for half in [1/2, 1), Q0.31 to Q0.31, by three steps of Newton and Raphson from 48/17 - 32/17 *
 * half. */
static int32_t reciprocal(int32_t half)
{
    int32_t r = 1515870810 + fl_high_mul(half, -1010580540); /* Q2.29 */
    for (int step = 0; step < 3; step++) {
        const int32_t error = (1 << 29) - fl_high_mul(half, r);
        r += fl_saturate((int64_t)fl_high_mul(r, error) * 4);
    }
    return fl_saturate((int64_t)r * 2);
}

INLINE void softmax(const uint8_t *x, const int32_t *exp, uint8_t *y, int32_t count, int32_t x_step, int32_t y_step,
                    int is_unsigned)
{
    const int32_t lowest = is_unsigned ? 0 : -128;
    int32_t highest = load(x, is_unsigned);
    for (int32_t i = 1; i < count; i++) {
        const int32_t value = load(x + i * x_step, is_unsigned);
        highest = value > highest ? value : highest;
    }
    int32_t sum = 0; /* Q12.19 */
    for (int32_t i = 0; i < count; i++) {
        sum = fl_add_wrapping(sum, fl_divide_by_pot(exp[highest - load(x + i * x_step, is_unsigned)], 12));
    }
    const int32_t zeros = fl_leading_zeros((uint32_t)sum);
    const int32_t shift = 12 - zeros + 23;
    const int32_t scale = reciprocal((int32_t)(((uint32_t)sum << zeros) >> 1));
    for (int32_t i = 0; i < count; i++) {
        const int32_t part = fl_high_mul(scale, exp[highest - load(x + i * x_step, is_unsigned)]);
        const int32_t value = shift > 31 ? 0 : fl_divide_by_pot(part, shift);
        y[i * y_step] = (uint8_t)fl_clamp(lowest + value, lowest, lowest + 255);
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
