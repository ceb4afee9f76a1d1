/* RNN of one row in float32. Sums are added in the order of their indices. */
#include "float_recurrent.h"

#include <math.h>
#include <string.h>

WITHOUT_FLOAT_VECTORS
void fl_rnn_f32(const float *x, const float *input, const float *recurrent, const float *bias, float *hidden, float *y,
                const void *parameters)
{
    const struct fl_float_rnn *p = parameters;
    for (int32_t u = 0; u < p->units; u++) {
        float sum = fl_add_products_f32(bias[u], x, input + u * p->depth, p->depth);
        sum = fl_add_products_f32(sum, hidden, recurrent + u * p->units, p->units);
        y[u] = p->activation == 2 ? tanhf(sum) : p->activation == 1 && sum < 0.0f ? 0.0f : sum;
    }
    memcpy(hidden, y, (size_t)p->units * sizeof y[0]);
}
