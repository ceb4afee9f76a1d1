/* Element-wise product of 8-bit tensors. */
#include "mul.h"

#include "elements.h"
#include "narrow.h"
#include "rounding.h"

/* Products are below 2^17. */
INLINE void mul(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, int32_t step0, int32_t step1,
                const struct fl_mul *parameters, int is_unsigned)
{
    const struct fl_mul v = *parameters; /* local copy: y may alias it */
    const int narrow = v.shift < 0 && !v.single_rounding;
    for (int32_t i = 0; i < count; i++) {
        const int32_t product = (load(x0, is_unsigned) - v.zero_point0) * (load(x1, is_unsigned) - v.zero_point1);
        const int32_t scaled =
            narrow ? narrow_divide(narrow_high_mul(product, v.multiplier), -v.shift, 1 << (-v.shift - 1))
                   : requantize(product, v.multiplier, v.shift, v.single_rounding);
        const int32_t shifted = fl_add_wrapping(scaled, v.zero_point);
        const int32_t raised = shifted < v.low ? v.low : shifted; /* on RISC-V shorter than fl_clamp */
        y[i] = (uint8_t)(raised > v.high ? v.high : raised);
        x0 += step0;
        x1 += step1;
    }
}

void fl_mul_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters)
{
    mul((const uint8_t *)x0, (const uint8_t *)x1, y, count, step0, step1, parameters, 0);
}

void fl_mul_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters)
{
    mul(x0, x1, y, count, step0, step1, parameters, 1);
}
