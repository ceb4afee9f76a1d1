/* QUANTIZE of float32. */
#include "quantize.h"

#include "requantize.h"

/* round(x / scale) + zero_point, halves away from zero. Bounds are checked before the conversion to an integer,
 * which is undefined for what does not fit. */
void fl_quantize(const float *x, void *y, int32_t count, int32_t step, float scale, int32_t zero_point, int32_t low,
                 int32_t high)
{
    uint8_t *to = y;
    for (int32_t i = 0; i < count; i++) {
        const float value = x[i * step] / scale;
        int32_t whole;
        if (value >= 1024.0f) {
            whole = 1024;
        } else if (value > -1024.0f) {
            const int32_t truncated = (int32_t)value;
            const float rest = value - (float)truncated;
            whole = truncated + (rest >= 0.5f) - (rest <= -0.5f);
        } else {
            whole = -1024; /* and NaN */
        }
        to[i] = (uint8_t)fl_clamp(whole + zero_point, low, high);
    }
}
