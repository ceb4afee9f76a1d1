/* A product of two int8 matrices (include/matmul_image.h). */
#pragma once

#include <stdint.h>

void neon_dotprod_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters);
