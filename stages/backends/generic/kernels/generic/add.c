/* Element-wise sum and difference of 8-bit tensors. */
#include "add.h"

#include "elements.h"
#include "narrow.h"
#include "rounding.h"

enum { HALF = 1 << 30 }; /* one half: the multiplier of the input with the larger scale */

/* Both inputs on a common scale, added (sign 1) or subtracted (sign -1), and back to the output's scale. */
INLINE void add(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, int32_t step0, int32_t step1,
                const struct fl_add *parameters, int is_unsigned)
{
    const struct fl_add v = *parameters; /* local copy: y may alias it */
    const int32_t scale = (int32_t)1 << v.left_shift;
    for (int32_t i = 0; i < count; i++) {
        const int32_t t0 = (load(x0, is_unsigned) - v.zero_point0) * scale;
        const int32_t t1 = (load(x1, is_unsigned) - v.zero_point1) * scale;
        const int32_t s0 = requantize(t0, v.multiplier0, v.shift0, v.single_rounding);
        const int32_t s1 = requantize(t1, v.multiplier1, v.shift1, v.single_rounding);
        const int32_t sum = requantize(s0 + v.sign * s1, v.multiplier, v.shift, v.single_rounding);
        y[i] = (uint8_t)fl_clamp(fl_add_wrapping(sum, v.zero_point), v.low, v.high);
        x0 += step0;
        x1 += step1;
    }
}

/* An input of a sum: `factor` is 1 or -1. */
struct addend {
    const uint8_t *x;
    int32_t step, zero_point, multiplier, shift, factor;
};

/* The same if the first input is only halved; then the sum is below 2^29. */
INLINE void add_halved(struct addend a, struct addend b, uint8_t *y, int32_t count, const struct fl_add *parameters,
                       int is_unsigned)
{
    const struct fl_add v = *parameters;
    const int32_t one = a.factor * (1 << (v.left_shift - 1));
    const int32_t shift = -b.shift, half = shift > 0 ? 1 << (shift - 1) : 0, sign = shift > 0 ? -1 : 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t s = narrow_scale(load(b.x, is_unsigned) - b.zero_point, b.multiplier, 31 - v.left_shift);
        const int32_t t = (s + ((s >> 31) & sign) + half) >> shift;
        const int32_t sum = (load(a.x, is_unsigned) - a.zero_point) * one + t * b.factor;
        const int32_t scaled = narrow_divide(narrow_high_mul(sum, v.multiplier), -v.shift, 1 << (-v.shift - 1));
        y[i] = (uint8_t)fl_clamp(scaled + v.zero_point, v.low, v.high);
        a.x += a.step;
        b.x += b.step;
    }
}

static int is_halved(int32_t multiplier, int32_t shift)
{
    return multiplier == HALF && shift == 0;
}

INLINE void choose(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, int32_t step0, int32_t step1,
                   const struct fl_add *v, int is_unsigned)
{
    struct addend a = {x0, step0, v->zero_point0, v->multiplier0, v->shift0, 1};
    struct addend b = {x1, step1, v->zero_point1, v->multiplier1, v->shift1, v->sign};
    if (!is_halved(a.multiplier, a.shift)) {
        const struct addend other = a;
        a = b;
        b = other;
    }
    const int fits = v->left_shift >= 15 && v->left_shift <= 20 && v->shift < 0 && b.shift <= 0;
    if (fits && is_halved(a.multiplier, a.shift) && !v->single_rounding) {
        add_halved(a, b, y, count, v, is_unsigned);
    } else {
        add(x0, x1, y, count, step0, step1, v, is_unsigned);
    }
}

void fl_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters)
{
    choose((const uint8_t *)x0, (const uint8_t *)x1, y, count, step0, step1, parameters, 0);
}

void fl_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters)
{
    choose(x0, x1, y, count, step0, step1, parameters, 1);
}
