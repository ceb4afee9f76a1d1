/* Declarations of the functions in depthwise_band.S; see there. */
#pragma once

#include <stdint.h>

typedef void arm_dsp_depthwise_band(const int8_t *x, const int32_t *channels, int8_t *out, int32_t *columns, const int32_t *fields);

arm_dsp_depthwise_band arm_dsp_depthwise_band_r1, arm_dsp_depthwise_band_r2, arm_dsp_depthwise_band_r3;
arm_dsp_depthwise_band arm_dsp_depthwise_band_r1_long, arm_dsp_depthwise_band_r2_long, arm_dsp_depthwise_band_r3_long;
arm_dsp_depthwise_band arm_dsp_depthwise_band_r1_clamped, arm_dsp_depthwise_band_r2_clamped, arm_dsp_depthwise_band_r3_clamped;
arm_dsp_depthwise_band arm_dsp_depthwise_band_r1_clamped_long, arm_dsp_depthwise_band_r2_clamped_long;
arm_dsp_depthwise_band arm_dsp_depthwise_band_r3_clamped_long;
