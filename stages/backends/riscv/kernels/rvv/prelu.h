/* Declarations of the functions in prelu.S; see there. */
#pragma once

#include <stdint.h>

typedef void rvv_prelu(const void *x, const void *slopes, void *y, int32_t count, int32_t x_step, int32_t slope_step,
                       const void *fields, const void *table);
rvv_prelu rvv_prelu_s8, rvv_prelu_u8;
