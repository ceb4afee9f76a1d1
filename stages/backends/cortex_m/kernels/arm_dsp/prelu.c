/* PRELU: values from zero up by a table, values below zero times their slope. */
#include "prelu.h"

#include "sums.h"

DSP_INLINE void prelu(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, int32_t step0, int32_t step1,
                      const void *parameters, const uint8_t *table, int is_unsigned)
{
    const struct arm_dsp_prelu p = *(const struct arm_dsp_prelu *)parameters; /* local copy: y may alias it */
    for (uint8_t *const end = y + count; y != end; y++) {
        const int32_t value = sums_element(x0, is_unsigned) - p.zero_point0;
        if (value >= 0) {
            *y = table[value];
        } else {
            const int32_t product = value * (sums_element(x1, is_unsigned) - p.zero_point1);
            const int32_t scaled = dsp_smmlar(dsp_smmlar(product, p.doubled, product), p.rounder, p.zero_point);
            *y = (uint8_t)(scaled < p.low ? p.low : scaled > p.high ? p.high : scaled);
        }
        x0 += step0;
        x1 += step1;
    }
}

void arm_dsp_prelu_s8(const void *x0, const void *x1, void *y, int32_t count, int32_t step0, int32_t step1,
                      const void *parameters, const void *table)
{
    prelu(x0, x1, y, count, step0, step1, parameters, table, 0);
}

void arm_dsp_prelu_u8(const void *x0, const void *x1, void *y, int32_t count, int32_t step0, int32_t step1,
                      const void *parameters, const void *table)
{
    prelu(x0, x1, y, count, step0, step1, parameters, table, 1);
}
