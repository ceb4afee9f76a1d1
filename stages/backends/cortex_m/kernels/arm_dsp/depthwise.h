/* Depthwise convolution on planes of int16. The padding is written once. Channels are widened into the plane one by one and
 * multiplied by depthwise3x3.S. */
#pragma once

#include <stdint.h>

/* Where a channel of the image lies (steps in bytes) and where it goes in the plane (in elements). */
struct arm_dsp_widen {
    int32_t rows, columns, row_step, column_step;
    int32_t first, pitch;
};

void arm_dsp_fill(int16_t *plane, int32_t count, int32_t value);

/* Declarations of the functions in widen.S; see there. */
typedef void arm_dsp_widen_channel(int16_t *plane, const void *x, const int32_t *geometry);

arm_dsp_widen_channel arm_dsp_widen_s8_near, arm_dsp_widen_s8_apart, arm_dsp_widen_u8_near, arm_dsp_widen_u8_apart;

/* Declarations of the functions in depthwise3x3.S; see there. */
typedef void arm_dsp_depthwise3x3(const int16_t *plane, const int32_t *channel, void *out, const int32_t *fields);

arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_near, arm_dsp_depthwise3x3_s1_near_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_near_clamped, arm_dsp_depthwise3x3_s1_near_clamped_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_near_wide, arm_dsp_depthwise3x3_s1_near_wide_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_rows, arm_dsp_depthwise3x3_s1_rows_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_rows_clamped, arm_dsp_depthwise3x3_s1_rows_clamped_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_rows_wide, arm_dsp_depthwise3x3_s1_rows_wide_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_apart, arm_dsp_depthwise3x3_s1_apart_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_apart_clamped, arm_dsp_depthwise3x3_s1_apart_clamped_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s1_apart_wide, arm_dsp_depthwise3x3_s1_apart_wide_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_near, arm_dsp_depthwise3x3_s2_near_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_near_clamped, arm_dsp_depthwise3x3_s2_near_clamped_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_near_wide, arm_dsp_depthwise3x3_s2_near_wide_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_rows, arm_dsp_depthwise3x3_s2_rows_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_rows_clamped, arm_dsp_depthwise3x3_s2_rows_clamped_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_rows_wide, arm_dsp_depthwise3x3_s2_rows_wide_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_apart, arm_dsp_depthwise3x3_s2_apart_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_apart_clamped, arm_dsp_depthwise3x3_s2_apart_clamped_long;
arm_dsp_depthwise3x3 arm_dsp_depthwise3x3_s2_apart_wide, arm_dsp_depthwise3x3_s2_apart_wide_long;

/* Reads rows of an int8 image in place; see depthwise3x3.S. */
typedef void arm_dsp_depthwise3x3_bytes(const int8_t *x, const int32_t *channel, void *out, const int32_t *fields);

arm_dsp_depthwise3x3_bytes arm_dsp_depthwise3x3_bytes_s1_rows, arm_dsp_depthwise3x3_bytes_s1_rows_long;
arm_dsp_depthwise3x3_bytes arm_dsp_depthwise3x3_bytes_s1_rows_clamped, arm_dsp_depthwise3x3_bytes_s1_rows_clamped_long;
arm_dsp_depthwise3x3_bytes arm_dsp_depthwise3x3_bytes_s1_apart, arm_dsp_depthwise3x3_bytes_s1_apart_long;
arm_dsp_depthwise3x3_bytes arm_dsp_depthwise3x3_bytes_s1_apart_clamped, arm_dsp_depthwise3x3_bytes_s1_apart_clamped_long;
arm_dsp_depthwise3x3_bytes arm_dsp_depthwise3x3_bytes_s2_rows, arm_dsp_depthwise3x3_bytes_s2_rows_long;
arm_dsp_depthwise3x3_bytes arm_dsp_depthwise3x3_bytes_s2_rows_clamped, arm_dsp_depthwise3x3_bytes_s2_rows_clamped_long;
arm_dsp_depthwise3x3_bytes arm_dsp_depthwise3x3_bytes_s2_apart, arm_dsp_depthwise3x3_bytes_s2_apart_long;
arm_dsp_depthwise3x3_bytes arm_dsp_depthwise3x3_bytes_s2_apart_clamped, arm_dsp_depthwise3x3_bytes_s2_apart_clamped_long;
