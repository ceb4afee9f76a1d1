/* QuantizeLinear as in ONNX Runtime: float32 to 8 bits. */
#pragma once

#include <stdint.h>

/* `low` and `high` are the bounds of the 8-bit type; `step` is the distance of neighbours in x. */
void fl_quantize_even(const float *x, void *y, int32_t count, int32_t step, float scale, int32_t zero_point,
                      int32_t low, int32_t high);
