/* Left shift of a frame of int16, as in SignalFftAutoScale of TFLM and in microfrontend. */
#pragma once

#include <stdint.h>

/* Return 15 minus the bits of the largest magnitude; 0 if all samples are 0. `bits` has the highest bit of that magnitude. */
static inline int32_t fl_scale_bits(uint32_t bits)
{
    return bits ? __builtin_clz(bits) - 17 : 0;
}

/* The same for a frame with -2^15. Its magnitude does not fit int16 and becomes -2^15, as in TFLM; or it is ignored,
 * and without other samples but zeros the shift is 15. */
static inline int32_t fl_scale_bits_of_lowest(const int16_t *x, int32_t size, int32_t ignored)
{
    int32_t largest = 0;
    for (int32_t i = 0; i < size; i++) {
        if (ignored && x[i] == INT16_MIN)
            continue;
        if (x[i] > largest)
            largest = x[i];
        else if (-x[i] > largest)
            largest = (int16_t)-x[i];
    }
    if (largest > 0)
        return fl_scale_bits((uint32_t)largest);
    return ignored ? 15 : 0;
}
