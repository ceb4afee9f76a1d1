/* Declarations of the functions in pointwise_s8.S; see there. */
#pragma once

#include <stdint.h>

typedef void rvp_pointwise(const void *x, const int32_t *params, void *out, int pixels, int stride, int blocks, int clip);

rvp_pointwise rvp_pointwise_s8_c1, rvp_pointwise_s8_c2, rvp_pointwise_s8_p1, rvp_pointwise_s8_p2, rvp_pointwise_s8_p3;
rvp_pointwise rvp_pointwise_s8_two2; /* RV64 */
