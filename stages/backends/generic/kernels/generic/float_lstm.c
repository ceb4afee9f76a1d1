/* LSTM of one row in float32. Sums are added in the order of their indices. */
#include "float_lstm.h"

#include "float_vectors.h"

#include <math.h>
#include <string.h>

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* Add the products of a row and the interleaved weights of four gates. */
static ALWAYS_INLINE void add_products(float *restrict gates, const float *restrict x, const float *restrict weights,
                                       int32_t count)
{
    const float *second = weights + count, *third = second + count, *fourth = third + count;
    float sum0 = gates[0], sum1 = gates[1], sum2 = gates[2], sum3 = gates[3];
    for (int32_t i = 0; i < count; i++) {
        const float value = *x++;
        sum0 += value * *weights++;
        sum1 += value * *second++;
        sum2 += value * *third++;
        sum3 += value * *fourth++;
    }
    gates[0] = sum0;
    gates[1] = sum1;
    gates[2] = sum2;
    gates[3] = sum3;
}

WITHOUT_FLOAT_VECTORS
void fl_lstm_f32(const float *x, const float *input, const float *recurrent, const float *bias, float *hidden,
                 float *cell, float *y, float clip, const void *parameters)
{
    const struct fl_float_lstm *p = parameters;
    for (int32_t u = 0; u < p->units; u++) {
        float gates[4];
        memcpy(gates, bias + 4 * u, sizeof gates);
        add_products(gates, x, input + u * 4 * p->depth, p->depth);
        add_products(gates, hidden, recurrent + u * 4 * p->units, p->units);
        const float sum = cell[u] * sigmoid(gates[1]) + sigmoid(gates[0]) * tanhf(gates[2]);
        cell[u] = sum < -clip ? -clip : sum > clip ? clip : sum;
        y[u] = sigmoid(gates[3]) * tanhf(cell[u]);
    }
    memcpy(hidden, y, (size_t)p->units * sizeof y[0]);
}
