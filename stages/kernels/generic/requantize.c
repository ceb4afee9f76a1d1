/* QUANTIZE between integer types, and float32 at the model's edges. */
#include "requantize.h"
#include "generic.h"

static inline uint8_t requantized(int32_t x, const struct fl_requantize *v)
{
    const int32_t centred = x - v->input_zero_point;
    const int32_t scaled = v->single_rounding ? fl_requantize_single(centred, v->multiplier, v->shift)
                                              : fl_requantize_double(centred, v->multiplier, v->shift);
    return (uint8_t)fl_clamp(fl_add_wrapping(scaled, v->zero_point), v->low, v->high);
}

void fl_requantize_s8(const int8_t *x, void *y, int32_t count, int32_t step, const void *parameters)
{
    uint8_t *to = y;
    for (int32_t i = 0; i < count; i++) {
        to[i] = requantized(x[i * step], parameters);
    }
}

void fl_requantize_u8(const uint8_t *x, void *y, int32_t count, int32_t step, const void *parameters)
{
    uint8_t *to = y;
    for (int32_t i = 0; i < count; i++) {
        to[i] = requantized(x[i * step], parameters);
    }
}

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

void fl_dequantize_s8(const int8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point)
{
    for (int32_t i = 0; i < count; i++) {
        y[i] = scale * (float)(x[i * step] - zero_point);
    }
}

void fl_dequantize_u8(const uint8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point)
{
    for (int32_t i = 0; i < count; i++) {
        y[i] = scale * (float)(x[i * step] - zero_point);
    }
}
