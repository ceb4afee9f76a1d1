/* Means over one or two axes of an 8-bit tensor. The division is part of the multiplier. */
#include "mean.h"

#include "elements.h"
#include "requantize.h"

static uint8_t finish(int32_t sum, const struct fl_mean *v)
{
    const int32_t scaled = v->single_rounding ? fl_requantize_single(sum, v->multiplier, v->shift)
                                              : fl_requantize_double(sum, v->multiplier, v->shift);
    return (uint8_t)fl_clamp(fl_add_wrapping(scaled, v->zero_point), v->low, v->high);
}

/* The sum of `count` neighbours, four at a time. */
INLINE int32_t sum_of(const uint8_t *p, int32_t count, int is_unsigned)
{
    int32_t sum = 0;
    for (; count >= 4; count -= 4) {
        sum += load(p, is_unsigned) + load(p + 1, is_unsigned) + load(p + 2, is_unsigned) + load(p + 3, is_unsigned);
        p += 4;
    }
    for (; count > 0; count--) {
        sum += load(p++, is_unsigned);
    }
    return sum;
}

/* The means of four neighbours. */
INLINE void four(const uint8_t *x, uint8_t *y, const struct fl_mean *v, int is_unsigned)
{
    int32_t s0 = -v->offset, s1 = s0, s2 = s0, s3 = s0;
    const int32_t step = v->step1;
    for (int32_t a = v->extent0; a > 0; a--) {
        const uint8_t *p = x;
        for (int32_t b = v->extent1; b > 0; b--) {
            s0 += load(p, is_unsigned);
            s1 += load(p + 1, is_unsigned);
            s2 += load(p + 2, is_unsigned);
            s3 += load(p + 3, is_unsigned);
            p += step;
        }
        x += v->step0;
    }
    y[0] = finish(s0, v);
    y[1] = finish(s1, v);
    y[2] = finish(s2, v);
    y[3] = finish(s3, v);
}

INLINE void mean(const uint8_t *x, uint8_t *y, int32_t count, const struct fl_mean *v, int is_unsigned)
{
    int32_t i = 0;
    if (v->x_step == 1) {
        for (; i + 4 <= count; i += 4) {
            four(x + i, y + i, v, is_unsigned);
        }
    }
    for (; i < count; i++) {
        int32_t sum = -v->offset;
        for (int32_t a = 0; a < v->extent0; a++) {
            const uint8_t *p = x + i * v->x_step + a * v->step0;
            if (v->step1 == 1) {
                sum += sum_of(p, v->extent1, is_unsigned);
                continue;
            }
            for (int32_t b = 0; b < v->extent1; b++) {
                sum += load(p, is_unsigned);
                p += v->step1;
            }
        }
        y[i] = finish(sum, v);
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
