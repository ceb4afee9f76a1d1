/* QUANTIZE between 8-bit types. */
#include "requantize_elements.h"

#include "requantize.h"

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
