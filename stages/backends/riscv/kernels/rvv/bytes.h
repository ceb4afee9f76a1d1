/* Declarations of the functions in bytes.S and prelu.S; see there. */
#pragma once

#include <stdint.h>

void rvv_table(const void *x, const void *table, void *y, int32_t count);

typedef void rvv_extremum(const void *x0, const void *x1, void *y, int32_t count, int32_t step0, int32_t step1);
rvv_extremum rvv_maximum_s8, rvv_maximum_u8, rvv_minimum_s8, rvv_minimum_u8;
