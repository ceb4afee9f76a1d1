/* GRU of one row in float32. Sums are added in the order of their indices. */
#include "float_recurrent.h"

#include <math.h>
#include <string.h>

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

WITHOUT_FLOAT_VECTORS
void fl_gru_f32(const float *x, const float *input, const float *recurrent, const float *bias, float *hidden, float *y,
                float *w, const void *parameters)
{
    const struct fl_float_gru *p = parameters;
    const int32_t units = p->units, depth = p->depth;
    for (int32_t u = 0; u < units; u++) {
        const int32_t row = units + u;
        float sum = fl_add_products_f32(bias[row] + bias[3 * units + row], x, input + row * depth, depth);
        sum = fl_add_products_f32(sum, hidden, recurrent + row * units, units);
        w[u] = p->reset_after ? sigmoid(sum) : sigmoid(sum) * hidden[u];
    }
    for (int32_t u = 0; u < units; u++) {
        const int32_t row = 2 * units + u;
        const float ahead = fl_add_products_f32(bias[row], x, input + row * depth, depth);
        const float *state = p->reset_after ? hidden : w;
        const float back = fl_add_products_f32(bias[3 * units + row], state, recurrent + row * units, units);
        const float fresh = tanhf(ahead + (p->reset_after ? w[u] * back : back));
        float sum = fl_add_products_f32(bias[u] + bias[3 * units + u], x, input + u * depth, depth);
        sum = fl_add_products_f32(sum, hidden, recurrent + u * units, units);
        const float update = sigmoid(sum);
        y[u] = (1.0f - update) * fresh + update * hidden[u];
    }
    memcpy(hidden, y, (size_t)units * sizeof y[0]);
}
