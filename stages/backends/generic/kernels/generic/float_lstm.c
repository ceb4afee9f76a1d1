/* LSTM of one row in float32, the sums in the order of their indices. */
#include "float_lstm.h"

#include <math.h>
#include <string.h>

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

void fl_lstm_f32(const float *x, const float *input, const float *recurrent, const float *bias, float *hidden,
                 float *cell, float *y, float clip, const void *parameters)
{
    const struct fl_float_lstm *p = parameters;
    for (int32_t u = 0; u < p->units; u++) {
        float entering = 0, kept = 0, given = 0;
        for (int32_t k = 0; k < 4; k++) {
            float gate = *bias++;
            for (int32_t j = 0; j < p->depth; j++) {
                gate += x[j] * *input++;
            }
            for (int32_t j = 0; j < p->units; j++) {
                gate += hidden[j] * *recurrent++;
            }
            switch (k) {
            case 0:
                entering = sigmoid(gate);
                break;
            case 1:
                kept = cell[u] * sigmoid(gate);
                break;
            case 2:
                entering *= tanhf(gate);
                break;
            default:
                given = sigmoid(gate);
            }
        }
        const float sum = kept + entering;
        cell[u] = sum < -clip ? -clip : sum > clip ? clip : sum;
        y[u] = given * tanhf(cell[u]);
    }
    memcpy(hidden, y, (size_t)p->units * sizeof y[0]);
}
