/* Declarations of the functions in depthwise_band.S; see there. */
#pragma once

#include <stdint.h>

typedef void mve_depthwise_band(const int8_t *x, const int32_t *constants, int8_t *y, const int16_t *places, int8_t *strips,
                                const int32_t *fields);

mve_depthwise_band mve_depthwise_band_r1, mve_depthwise_band_r2, mve_depthwise_band_r3;
mve_depthwise_band mve_depthwise_band_r1_s2, mve_depthwise_band_r2_s2;
mve_depthwise_band mve_depthwise_band_r1_clipped, mve_depthwise_band_r2_clipped, mve_depthwise_band_r3_clipped;
mve_depthwise_band mve_depthwise_band_r1_s2_clipped, mve_depthwise_band_r2_s2_clipped;
