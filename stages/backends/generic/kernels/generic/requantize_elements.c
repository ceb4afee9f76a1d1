/* QUANTIZE between 8-bit types. */
#include "requantize_elements.h"

#include "elements.h"
#include "narrow.h"
#include "requantize.h"

INLINE void requantize_elements(const uint8_t *x, uint8_t *y, int32_t count, int32_t step,
                                const struct fl_requantize *parameters, int is_unsigned)
{
    const struct fl_requantize v = *parameters; /* local copy: y may alias it */
    const int narrow = v.shift < 0 && !v.single_rounding;
    for (int32_t i = 0; i < count; i++) {
        const int32_t centred = load(x, is_unsigned) - v.input_zero_point;
        const int32_t scaled =
            narrow              ? narrow_divide(narrow_high_mul(centred, v.multiplier), -v.shift, 1 << (-v.shift - 1))
            : v.single_rounding ? fl_requantize_single(centred, v.multiplier, v.shift)
                                : fl_requantize_double(centred, v.multiplier, v.shift);
        y[i] = (uint8_t)fl_clamp(fl_add_wrapping(scaled, v.zero_point), v.low, v.high);
        x += step;
    }
}

void fl_requantize_s8(const int8_t *x, void *y, int32_t count, int32_t step, const void *parameters)
{
    requantize_elements((const uint8_t *)x, y, count, step, parameters, 0);
}

void fl_requantize_u8(const uint8_t *x, void *y, int32_t count, int32_t step, const void *parameters)
{
    requantize_elements(x, y, count, step, parameters, 1);
}
