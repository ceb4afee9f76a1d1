/* A row times a matrix. Results are found by looking the sums up in sorted lists. For layers that no 32-bit multiplier scales exactly. */
#pragma once

#include <stdint.h>

/* sum = bias[j] + sum over k of x[k] * (w[j][k] - weight_zero_point), modulo 2^32
 * y[j] = zero_point + s[0] + how many of s[1] to s[255] are below sum, where s is the row of `steps` for unit j.
 * `units` has the bias and the row of each. */
enum { FL_STEPPED_BIAS, FL_STEPPED_ROW, FL_STEPPED_UNIT };
enum { FL_STEPS = 256 };
struct fl_stepped {
    int32_t units, depth, weight_zero_point, zero_point;
};
void fl_stepped_s8(const int8_t *x, const int8_t *w, const int32_t *units, const int32_t *steps, void *y,
                   const void *parameters);
void fl_stepped_u8(const uint8_t *x, const int8_t *w, const int32_t *units, const int32_t *steps, void *y,
                   const void *parameters);
