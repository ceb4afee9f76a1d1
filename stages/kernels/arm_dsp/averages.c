#include "averages.h"

#include "plane_sum.h"

/* sum / count to the nearest, halves away from zero, clipped. */
DSP_INLINE uint8_t average(int32_t sum, const struct arm_dsp_average *v)
{
    const int32_t half = v->count / 2, mean = (sum > 0 ? sum + half : sum - half) / v->count;
    return (uint8_t)(mean < v->low ? v->low : mean > v->high ? v->high : mean);
}

void arm_dsp_average_planes(const void *x, void *y, const int32_t *fields)
{
    const struct arm_dsp_average v = *(const struct arm_dsp_average *)fields;
    const uint8_t *from = x;
    uint8_t *to = y;
    for (int32_t channels = v.channels; channels > 0; channels--) {
        *to++ = average(plane_sum(from, v.count, v.flip), &v);
        from += v.count;
    }
}
