/* SVDF of one row: features of the input are stored for a number of steps and weighted by their age. */
#pragma once

#include <stdint.h>

/* A state is [units * rank][memory], the oldest first:
 *
 *      s0[0] s0[1] ... s0[memory - 1] <- feature 0 of x      each row moves left by one, then
 *      s1[0] s1[1] ... s1[memory - 1] <- feature 1 of x      y[u] = bias[u] + the products of `rank` rows of state and time
 */
struct fl_svdf {
    int32_t units, rank, depth, memory;
    int32_t input_zero_point, feature_multiplier, feature_shift, multiplier, shift;
    int32_t zero_point, low, high, single_rounding;
};
void fl_svdf_s8(const int8_t *x, const int8_t *feature, const int16_t *time, const int32_t *bias, int16_t *state,
                int8_t *y, const void *parameters);
