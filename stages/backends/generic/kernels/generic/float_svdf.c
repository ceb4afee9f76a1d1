/* SVDF of one row in float32, the sums in the order of their indices. */
#include "float_svdf.h"

#include "float_vectors.h"

#include <string.h>

static ALWAYS_INLINE float dot(const float *a, const float *b, int32_t count)
{
    float sum = 0;
    for (int32_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

WITHOUT_FLOAT_VECTORS
void fl_svdf_f32(const float *x, const float *feature, const float *time, const float *bias, float *state, float *y,
                 float low, float high, const void *parameters)
{
    const struct fl_float_svdf *p = parameters;
    const int32_t last = p->memory - 1;
    for (int32_t u = 0; u < p->units; u++) {
        float sum = bias[u];
        for (int32_t r = 0; r < p->rank; r++) {
            memmove(state, state + 1, (size_t)last * sizeof state[0]);
            state[last] = dot(x, feature, p->depth);
            sum += dot(state, time, p->memory);
            state += p->memory;
            feature += p->depth;
            time += p->memory;
        }
        y[u] = sum < low ? low : sum > high ? high : sum;
    }
}
