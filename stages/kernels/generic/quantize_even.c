/* QUANTIZE of float32, halves to even. */
#include "quantize_even.h"

#include "float_bits.h"
#include "requantize.h"

/* round(x / scale), halves to even. Bounds are checked before the conversion to an integer, which is undefined for what
 * does not fit. */
WITH_FLOATS int32_t divided(float x, float scale)
{
    const float value = x / scale;
    if (value >= 1024.0f) {
        return BEYOND;
    }
    if (value > -1024.0f) {
        const int32_t truncated = (int32_t)value;
        const float rest = value - (float)truncated;
        const int32_t odd = truncated & 1;
        const int32_t up = rest > 0.5f || (rest == 0.5f && odd);
        const int32_t down = rest < -0.5f || (rest == -0.5f && odd);
        return truncated + up - down;
    }
    return -BEYOND; /* and NaN */
}

void fl_quantize_even(const float *x, void *y, int32_t count, int32_t step, float scale, int32_t zero_point,
                      int32_t low, int32_t high)
{
    uint8_t *to = y;
    const uint32_t first = SOFT_FLOAT ? first_exponent(bits_of(scale)) : 0;
    const uint32_t reciprocal = first != 0 ? reciprocal_of(bits_of(scale)) : 0;
    for (int32_t i = 0; i < count; i++) {
        int certain = 0;
        int32_t whole = 0;
        if (first != 0) {
            whole = nearest(bits_of(*x), reciprocal, first, 1, &certain);
        }
        if (!certain) {
            whole = divided(*x, scale);
        }
        to[i] = (uint8_t)fl_clamp(whole + zero_point, low, high);
        x += step;
    }
}
