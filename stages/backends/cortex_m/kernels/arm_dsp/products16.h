/* Convolution and matrix product of 16-bit activations with 8-bit weights (include/products16_image.h). */
#pragma once

#include <stdint.h>

void arm_dsp_products16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, int32_t *scratch,
                        const void *parameters);
