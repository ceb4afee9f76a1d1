/* A step of an RNN or a GRU for one row in float32. Writes the result to y and `hidden`. */
#pragma once

#include <stdint.h>

#include "float_vectors.h"

/* activation: 0 none, 1 relu, 2 tanh */
struct fl_float_rnn {
    int32_t units, depth, activation;
};
void fl_rnn_f32(const float *x, const float *input, const float *recurrent, const float *bias, float *hidden, float *y,
                const void *parameters);

/* The gates are update, reset and new; rows of weights are [gate][unit], biases [input, recurrent][gate][unit].
   reset_after: the reset gate multiplies the product of the state, not the state. w: scratch for units numbers. */
struct fl_float_gru {
    int32_t units, depth, reset_after;
};
void fl_gru_f32(const float *x, const float *input, const float *recurrent, const float *bias, float *hidden, float *y,
                float *w, const void *parameters);

/* Add the products in the order of their indices, four in each round of the loop. */
static ALWAYS_INLINE float fl_add_products_f32(float sum, const float *a, const float *b, int32_t count)
{
    for (; count >= 4; count -= 4, a += 4, b += 4) {
        sum += a[0] * b[0];
        sum += a[1] * b[1];
        sum += a[2] * b[2];
        sum += a[3] * b[3];
    }
    for (int32_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}
