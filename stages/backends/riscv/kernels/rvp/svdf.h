/* SVDF on int8 for one row (include/svdf_image.h). */
#pragma once

#include <stdint.h>

void rvp_svdf_s8(const int8_t *x, const int8_t *feature, const int32_t *feature_bias, const int16_t *time, const int32_t *bias,
                  int16_t *state, int8_t *y, int32_t *scratch, const void *parameters);
