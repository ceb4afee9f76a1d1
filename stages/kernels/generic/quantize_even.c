/* QUANTIZE of float32, halves to even. */
#include "quantize_even.h"

#include "requantize.h"

/* round(x / scale) + zero_point. Bounds are checked before the conversion to an integer, which is undefined for what
 * does not fit. */
void fl_quantize_even(const float *x, void *y, int32_t count, int32_t step, float scale, int32_t zero_point,
                      int32_t low, int32_t high)
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
            const int32_t odd = truncated & 1;
            const int32_t up = rest > 0.5f || (rest == 0.5f && odd);
            const int32_t down = rest < -0.5f || (rest == -0.5f && odd);
            whole = truncated + up - down;
        } else {
            whole = -1024; /* and NaN */
        }
        to[i] = (uint8_t)fl_clamp(whole + zero_point, low, high);
    }
}
