/* The functions of gemm.S, which describes them. */
#ifndef FIRMLINE_ARM_DSP_GEMM_H
#define FIRMLINE_ARM_DSP_GEMM_H

#include <stdint.h>

typedef void arm_dsp_gemm(const int32_t *panel, const int32_t *pairs, void *out, int32_t count, const int32_t *fields);

arm_dsp_gemm arm_dsp_gemm_ab_r1_rows, arm_dsp_gemm_ab_r2_rows, arm_dsp_gemm_ab_r3_rows, arm_dsp_gemm_ab_r4_rows;
arm_dsp_gemm arm_dsp_gemm_ab_r1_planes, arm_dsp_gemm_ab_r2_planes, arm_dsp_gemm_ab_r3_planes, arm_dsp_gemm_ab_r4_planes;
arm_dsp_gemm arm_dsp_gemm_bytes_r1_rows, arm_dsp_gemm_bytes_r2_rows, arm_dsp_gemm_bytes_r3_rows, arm_dsp_gemm_bytes_r4_rows;
arm_dsp_gemm arm_dsp_gemm_bytes_r1_planes, arm_dsp_gemm_bytes_r2_planes, arm_dsp_gemm_bytes_r3_planes,
    arm_dsp_gemm_bytes_r4_planes;
arm_dsp_gemm arm_dsp_gemm_ab_r1_rows_long, arm_dsp_gemm_ab_r2_rows_long;
arm_dsp_gemm arm_dsp_gemm_ab_r3_rows_long, arm_dsp_gemm_ab_r4_rows_long;
arm_dsp_gemm arm_dsp_gemm_ab_r1_planes_long, arm_dsp_gemm_ab_r2_planes_long;
arm_dsp_gemm arm_dsp_gemm_ab_r3_planes_long, arm_dsp_gemm_ab_r4_planes_long;
arm_dsp_gemm arm_dsp_gemm_bytes_r1_rows_long, arm_dsp_gemm_bytes_r2_rows_long;
arm_dsp_gemm arm_dsp_gemm_bytes_r3_rows_long, arm_dsp_gemm_bytes_r4_rows_long;
arm_dsp_gemm arm_dsp_gemm_bytes_r1_planes_long, arm_dsp_gemm_bytes_r2_planes_long;
arm_dsp_gemm arm_dsp_gemm_bytes_r3_planes_long, arm_dsp_gemm_bytes_r4_planes_long;

#endif
