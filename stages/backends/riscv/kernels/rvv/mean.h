/* Declarations of the functions in mean.S; see there. */
#pragma once

#include <stdint.h>

typedef void rvv_mean(const void *x, void *y, int32_t count, const void *fields);
rvv_mean rvv_mean_s8, rvv_mean_u8, rvv_mean_strided_s8, rvv_mean_strided_u8;

typedef void rvv_average(const void *x, void *y, const void *fields);
rvv_average rvv_average_s8, rvv_average_u8;
