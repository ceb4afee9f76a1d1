/* A step of an LSTM for one row in float32. */
#pragma once

#include <stdint.h>

/* As lstm.h, without scales; bias is [units][4]. The cells are within -clip and clip, INFINITY: not bounded. */
struct fl_float_lstm {
    int32_t units, depth;
};
void fl_lstm_f32(const float *x, const float *input, const float *recurrent, const float *bias, float *hidden,
                 float *cell, float *y, float clip, const void *parameters);
