/* Declarations of the functions in dot_rows.S; see there. */
#pragma once

#include <stdint.h>

typedef void rvp_dot_rows(const void *x, const int8_t *weights, const int32_t *params, void *out, int steps, int units,
                          int clip, int weight_zero_point);

rvp_dot_rows rvp_dot_rows_s8, rvp_dot_rows_u8;
/* Rounding once. */
rvp_dot_rows rvp_dot_rows_s8s, rvp_dot_rows_u8s;
