/* Depthwise convolution of a plane by windows of five or seven columns. */
#ifndef FIRMLINE_ARM_DSP_DEPTHWISE_ROWS_H
#define FIRMLINE_ARM_DSP_DEPTHWISE_ROWS_H

#include <stdint.h>

/* The functions of depthwise_rows.S, which describes them. */
typedef void arm_dsp_depthwise_rows(const int16_t *plane, const int32_t *channel, void *out, const int32_t *fields);

arm_dsp_depthwise_rows arm_dsp_depthwise_rows5, arm_dsp_depthwise_rows5_long;
arm_dsp_depthwise_rows arm_dsp_depthwise_rows7, arm_dsp_depthwise_rows7_long;

#endif
