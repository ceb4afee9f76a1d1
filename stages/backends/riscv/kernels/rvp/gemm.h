/* Declarations of the functions in gemm_s8.S and dot_s8.S; see there. */
#pragma once

#include <stdint.h>

typedef void rvp_gemm(const int32_t *panel, const int8_t *weights, const int32_t *params, void *out, int chunks,
                      int blocks, int stride, int clip, int panels);

rvp_gemm rvp_gemm_s8_r1, rvp_gemm_s8_r2, rvp_gemm_s8_r3, rvp_gemm_s8_r4, rvp_gemm_s8_r5;
/* Weights with a zero point. */
rvp_gemm rvp_gemm_s8_r1z, rvp_gemm_s8_r2z, rvp_gemm_s8_r3z, rvp_gemm_s8_r4z, rvp_gemm_s8_r5z;
/* Rounding once. */
rvp_gemm rvp_gemm_s8_r1s, rvp_gemm_s8_r2s, rvp_gemm_s8_r3s, rvp_gemm_s8_r4s, rvp_gemm_s8_r5s;
rvp_gemm rvp_gemm_s8_r1zs, rvp_gemm_s8_r2zs, rvp_gemm_s8_r3zs, rvp_gemm_s8_r4zs, rvp_gemm_s8_r5zs;

/* One row. */
typedef void rvp_dot(const int32_t *panel, const int8_t *weights, const int32_t *params, void *out, int chunks,
                     int blocks, int clip);

rvp_dot rvp_dot_s8, rvp_dot_s8z, rvp_dot_s8s, rvp_dot_s8zs;
