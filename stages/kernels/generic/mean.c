/* Means over one or two axes of an 8-bit tensor. The division is part of the multiplier. */
#include "mean.h"

#include "elements.h"
#include "requantize.h"

INLINE void mean(const uint8_t *x, uint8_t *y, int32_t count, const struct fl_mean *v, int is_unsigned)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t sum = -v->offset;
        for (int32_t a = 0; a < v->extent0; a++) {
            const uint8_t *p = x + i * v->x_step + a * v->step0;
            for (int32_t b = 0; b < v->extent1; b++) {
                sum += is_unsigned ? *p : (int8_t)*p;
                p += v->step1;
            }
        }
        const int32_t scaled = v->single_rounding ? fl_requantize_single(sum, v->multiplier, v->shift)
                                                  : fl_requantize_double(sum, v->multiplier, v->shift);
        y[i] = (uint8_t)fl_clamp(fl_add_wrapping(scaled, v->zero_point), v->low, v->high);
    }
}

void fl_mean_s8(const int8_t *x, void *y, int32_t count, const void *parameters)
{
    mean((const uint8_t *)x, y, count, parameters, 0);
}

void fl_mean_u8(const uint8_t *x, void *y, int32_t count, const void *parameters)
{
    mean(x, y, count, parameters, 1);
}
