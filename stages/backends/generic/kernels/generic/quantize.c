/* QUANTIZE of float32. */
#include "quantize.h"

#include "float_bits.h"
#include "requantize.h"

/* round(x / scale), halves away from zero. Bounds are checked before the conversion to an integer, because an overflow there is undefined.
 */
WITH_FLOATS int32_t divided(float x, float scale)
{
    const float value = x / scale;
    if (value >= 1024.0f) {
        return BEYOND;
    }
    if (value > -1024.0f) {
        const int32_t truncated = (int32_t)value;
        const float rest = value - (float)truncated;
        return truncated + (rest >= 0.5f) - (rest <= -0.5f);
    }
    return -BEYOND; /* and NaN */
}

static __attribute__((noinline)) int32_t run(const float *x, uint8_t *y, int32_t count, int32_t step,
                                             const struct quantization *q)
{
    return certain_run(x, y, count, step, q, 0);
}

void fl_quantize(const float *x, void *y, int32_t count, int32_t step, float scale, int32_t zero_point, int32_t low,
                 int32_t high)
{
    uint8_t *to = y;
    const struct quantization q = quantization_of(scale, zero_point, low, high);
    for (int32_t i = 0; i < count; i++) {
        i += q.first == 0 ? 0 : run(x + i * step, to + i, count - i, step, &q);
        if (i < count) {
            to[i] = (uint8_t)fl_clamp(divided(x[i * step], scale) + zero_point, low, high);
        }
    }
}
