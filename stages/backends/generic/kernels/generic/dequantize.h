/* DEQUANTIZE: 8 bits to float32. */
#pragma once

#include <stdint.h>

/* `step` is the distance of neighbours in x. */
void fl_dequantize_s8(const int8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point);
void fl_dequantize_u8(const uint8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point);
