/* A step of an LSTM for one row: input, previous output and cell state (include/lstm_image.h). */
#pragma once

#include <stdint.h>

void fl_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias, const int32_t *scales,
                int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters);
