/* SVDF of one row in float32. */
#pragma once

#include <stdint.h>

/* As fl_svdf_s8, without scales; results lie between low and high. */
struct fl_float_svdf {
    int32_t units, rank, depth, memory;
};
void fl_svdf_f32(const float *x, const float *feature, const float *time, const float *bias, float *state, float *y,
                 float low, float high, const void *parameters);
