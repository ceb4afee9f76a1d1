/* PRELU: values below zero are multiplied by their slope. */
#include "prelu.h"

#include "elements.h"
#include "rounding.h"

INLINE void prelu(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, int32_t step0, int32_t step1,
                  const struct fl_prelu *parameters, int is_unsigned)
{
    const struct fl_prelu v = *parameters;
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = load(x0, is_unsigned) - v.zero_point0;
        int32_t scaled;
        if (value >= 0) {
            scaled = requantize(value, v.multiplier0, v.shift0, v.single_rounding);
        } else {
            const int32_t slope = load(x1, is_unsigned) - v.zero_point1;
            scaled = requantize(value * slope, v.multiplier1, v.shift1, v.single_rounding);
        }
        y[i] = (uint8_t)fl_clamp(fl_add_wrapping(scaled, v.zero_point), v.low, v.high);
        x0 += step0;
        x1 += step1;
    }
}

void fl_prelu_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
                 const void *parameters)
{
    prelu((const uint8_t *)x0, (const uint8_t *)x1, y, count, step0, step1, parameters, 0);
}

void fl_prelu_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
                 const void *parameters)
{
    prelu(x0, x1, y, count, step0, step1, parameters, 1);
}
