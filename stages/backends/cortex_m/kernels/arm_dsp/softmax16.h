/* Softmax of int16 rows. */
#pragma once

#include <stdint.h>

/* Each of `rows` rows has `count` elements; multiplier and shift scale differences. tables: struct softmax16_tables. */
void arm_dsp_softmax_s16(const int16_t *x, int16_t *y, const int32_t *tables, int32_t rows, int32_t count, int32_t multiplier,
                       int32_t shift);
