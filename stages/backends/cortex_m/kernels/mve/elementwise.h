/* Declarations of the functions in elementwise.S; see there. */
#pragma once

#include <stdint.h>

typedef void mve_elementwise(const void *x0, const void *x1, void *y, const int32_t *fields);

mve_elementwise mve_add_s8, mve_add_u8, mve_add_s16, mve_sub_s8, mve_sub_u8, mve_sub_s16;
mve_elementwise mve_mul_exact_s8, mve_mul_lowered_s8, mve_mul_single_s8;
mve_elementwise mve_mul_exact_u8, mve_mul_lowered_u8, mve_mul_single_u8;
mve_elementwise mve_mul_exact_s16, mve_mul_lowered_s16, mve_mul_single_s16;
