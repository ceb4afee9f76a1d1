/* Declarations of the functions in elementwise.S; see there. */
#pragma once

typedef void rvv_rows(const void *x0, const void *x1, void *y, const void *fields);
rvv_rows rvv_add_s8, rvv_add_u8, rvv_sub_s8, rvv_sub_u8, rvv_mul_s8, rvv_mul_u8;
rvv_rows rvv_add_strided_s8, rvv_add_strided_u8, rvv_sub_strided_s8, rvv_sub_strided_u8;
rvv_rows rvv_mul_strided_s8, rvv_mul_strided_u8;
rvv_rows rvv_mul_once_s8, rvv_mul_once_u8, rvv_mul_once_strided_s8, rvv_mul_once_strided_u8;
