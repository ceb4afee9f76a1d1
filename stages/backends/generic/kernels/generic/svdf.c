/* Integer SVDF of one row. */
#include "svdf.h"

#include <string.h>

#include "requantize.h"

static int32_t feature_of(const int8_t *x, const int8_t *w, const struct fl_svdf *p)
{
    uint32_t sum = 0;
    for (int32_t k = 0; k < p->depth; k++) {
        sum += (uint32_t)((x[k] - p->input_zero_point) * w[k]);
    }
    return fl_clamp(fl_requantize_double((int32_t)sum, p->feature_multiplier, p->feature_shift), INT16_MIN, INT16_MAX);
}

void fl_svdf_s8(const int8_t *x, const int8_t *feature, const int16_t *time, const int32_t *bias, int16_t *state,
                int8_t *y, const void *parameters)
{
    const struct fl_svdf *p = parameters;
    const int32_t last = p->memory - 1;
    for (int32_t u = 0; u < p->units; u++) {
        uint32_t sum = (uint32_t)bias[u];
        for (int32_t r = 0; r < p->rank; r++) {
            memmove(state, state + 1, (size_t)last * sizeof state[0]);
            state[last] = (int16_t)feature_of(x, feature, p);
            for (int32_t m = 0; m < p->memory; m++) {
                sum += (uint32_t)(state[m] * time[m]);
            }
            state += p->memory;
            feature += p->depth;
            time += p->memory;
        }
        const int32_t scaled = fl_requantize_double((int32_t)sum, p->multiplier, p->shift);
        y[u] = (int8_t)fl_clamp(fl_add_wrapping(scaled, p->zero_point), p->low, p->high);
    }
}
