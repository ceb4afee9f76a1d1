/* Declarations of the functions in pool_lines.S; see there. */
#pragma once

#include <stdint.h>

typedef void rvv_reduce(void *to, const void *from, int32_t taps, int32_t step, int32_t count);
rvv_reduce rvv_maxima_s8, rvv_maxima_u8, rvv_sums_s8, rvv_sums_u8;

typedef void rvv_strided_maxima(void *to, const void *from, int32_t taps, int32_t channels, int32_t pixels, int32_t step);
rvv_strided_maxima rvv_strided_maxima_s8, rvv_strided_maxima_u8;

typedef void rvv_means(void *to, const int16_t *from, int32_t taps, int32_t channels, int32_t count, int32_t elements);
rvv_means rvv_means_s8, rvv_means_u8;

typedef void rvv_clip(void *y, int32_t count, int32_t low, int32_t high);
rvv_clip rvv_clip_s8, rvv_clip_u8;
