/* A step of an LSTM on int8 for one row (include/lstm_image.h). */
#pragma once

#include <stdint.h>

void mve_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias, const int32_t *scales,
                 int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters);
