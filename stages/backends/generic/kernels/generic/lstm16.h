/* A step of an LSTM for one row of int16, in TFLM's arithmetic. */
#pragma once

#include <stdint.h>

/* As lstm.h, without zero points: bias is [units][4]. Sums have 64 bits, and scales multipliers of 15.
 *
 * table                        the sigmoid of i / 24 in Q0.16, for 256 i
 * entering, entering_shift     scale of the cells' new values; tanh_multiplier, tanh_shift: scale of tanh's inputs
 */
struct fl_lstm16 {
    int32_t units, depth, entering, entering_shift, tanh_multiplier, tanh_shift, clip, multiplier, shift;
};
void fl_lstm_s16(const int16_t *x, const int8_t *input, const int8_t *recurrent, const int64_t *bias,
                 const int32_t *scales, const int32_t *table, int16_t *hidden, int16_t *cell, int16_t *y,
                 const void *parameters);
