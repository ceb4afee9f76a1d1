/* Element-wise sum and difference of 8-bit tensors. */
#include "add.h"

#include "elements.h"
#include "rounding.h"

/* Both inputs on a common scale, added (sign 1) or subtracted (sign -1), and back to the output's scale. */
INLINE void add(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, int32_t step0, int32_t step1,
                const struct fl_add *parameters, int is_unsigned)
{
    const struct fl_add v = *parameters; /* a copy: y may point anywhere */
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

void fl_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters)
{
    add((const uint8_t *)x0, (const uint8_t *)x1, y, count, step0, step1, parameters, 0);
}

void fl_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters)
{
    add(x0, x1, y, count, step0, step1, parameters, 1);
}
