#include "sums.h"

#include "requantize.h"

/* `M` is the function that scales a sum. */
#define REQUANTIZE(name, M)                                                                                            \
    void name(const void *sums, void *values, const void *bias, const void *shifts, const void *bounds,                \
              int32_t pixels, int32_t channels, int32_t stride)                                                        \
    {                                                                                                                  \
        const int32_t *sum = sums, *b = bias, *m = b + channels, *bound = bounds;                                      \
        const int8_t *s = shifts;                                                                                      \
        uint8_t *to = values;                                                                                          \
                                                                                                                       \
        for (int32_t pixel = 0; pixel < pixels; pixel++, to += stride, sum += channels)                                \
            for (int32_t c = 0; c < channels; c++)                                                                     \
                to[c] = (uint8_t)fl_clamp(M(fl_add_wrapping(sum[c], b[c]), m[c], s[c]) + bound[0], bound[1], bound[2]); \
    }

REQUANTIZE(ne16_requantize_double, fl_requantize_double)
REQUANTIZE(ne16_requantize_single, fl_requantize_single)
