/* DEQUANTIZE to float32. */
#include "dequantize.h"

void fl_dequantize_s8(const int8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point)
{
    for (int32_t i = 0; i < count; i++) {
        y[i] = scale * (float)(x[i * step] - zero_point);
    }
}

void fl_dequantize_u8(const uint8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point)
{
    for (int32_t i = 0; i < count; i++) {
        y[i] = scale * (float)(x[i * step] - zero_point);
    }
}
