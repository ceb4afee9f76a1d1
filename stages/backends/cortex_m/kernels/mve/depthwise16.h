/* Depthwise convolution of 16-bit activations with 8-bit weights (include/depthwise16_clipped.h). */
#pragma once

#include <stdint.h>

void mve_depthwise16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, const void *parameters);
