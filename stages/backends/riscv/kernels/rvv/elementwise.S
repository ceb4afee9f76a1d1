/* Sum, difference and product of 8-bit tensors, in rows along which an input advances or repeats one value.
 *
 *   void rvv_<op>_<type>(const void *x0, const void *x1, void *y, const void *fields);            both inputs are dense
 *   void rvv_<op>_strided_<type>(...)                                                             any steps
 *   void rvv_mul_once_<type>(...), rvv_mul_once_strided_<type>(...)                               one rounding, a right shift
 *
 *   fields   int32: geometry below, then those of the operator (elementwise.py)
 *   y        rows are adjacent
 *
 * A turn has the elements of a group of eight registers of 32 bits:
 *
 *     v2 | v4                x0 and x1          e8, m2
 *     v8 | v12               less zero points   e16, m4
 *     v16 | v24              scaled             e32, m8
 */
#include "rvv_asm.h"

#define ROWS 0                        /* fields: rows, */
#define RUN 1                         /* elements of a row, */
#define ROW0 2                        /* distances of rows */
#define ROW1 3
#define STEP0 4                       /* and of elements */
#define STEP1 5
#define GEOMETRY 6

#define x0_row a0
#define x1_row a1
#define out a2
#define fields a3
#define count a4                      /* elements left */
#define vl a5
#define in0 a6
#define in1 a7
#define rows t5
#define step t6

/* Loads the next elements, less their zero points. */
.macro load_both strided, zero_point0, zero_point1, unsigned
    vsetvli vl, count, e8, m2, ta, ma
  .if \strided
    lw step, 4 * STEP0(fields)
    vlse8.v v2, (in0), step
    mul step, step, vl
    add in0, in0, step
    lw step, 4 * STEP1(fields)
    vlse8.v v4, (in1), step
    mul step, step, vl
    add in1, in1, step
  .else
    vle8.v v2, (in0)
    add in0, in0, vl
    vle8.v v4, (in1)
    add in1, in1, vl
  .endif
    vwsub\unsigned\().vx v8, v2, \zero_point0
    vwsub\unsigned\().vx v12, v4, \zero_point1
    sub count, count, vl
.endm

.macro first_row
    lw rows, 4 * ROWS(fields)
1:
    lw count, 4 * RUN(fields)
    mv in0, x0_row
    mv in1, x1_row
2:
.endm

.macro store_and_next
    vse8.v v16, (out)
    add out, out, vl
    bnez count, 2b
    lw step, 4 * ROW0(fields)
    add x0_row, x0_row, step
    lw step, 4 * ROW1(fields)
    add x1_row, x1_row, step
    addi rows, rows, -1
    bnez rows, 1b
.endm

#define ADD_SCALARS t0, t1, t2, t3, t4, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10

/* y = scale(scale0((x0 - t0) << t2) +- scale1((x1 - t1) << s1)) + s8 */
.macro sum name, op, strided, unsigned
function \name
    save s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10
    round_half_up
    load_fields fields, GEOMETRY, ADD_SCALARS
    first_row
    load_both \strided, t0, t1, \unsigned
    use_e32 8
    vsext.vf2 v16, v8
    vsll.vx v16, v16, t2
    scale_full x, v16, t3, t4, s0
    vsext.vf2 v24, v12
    vsll.vx v24, v24, s1
    scale_full x, v24, s2, s3, s4
    \op\().vv v16, v16, v24
    scale_twice x, 8, v16, s5, s6, s7
    finish_clamped 8, v16, s8, s9, s10
    store_and_next
    leave s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10
end_function \name
.endm

/* y = scale((x0 - t0) * (x1 - t1) << t2) + s1. With one rounding t3 is twice the multiplier. */
.macro product name, strided, once, unsigned
function \name
    save s0, s1, s2, s3
    round_half_up
    load_fields fields, GEOMETRY, t0, t1, t2, t3, t4, s0, s1, s2, s3
    first_row
    load_both \strided, t0, t1, \unsigned
    use_e16 8
    vwmul.vv v16, v8, v12
    use_e32 8
  .if \once
    scale_once x, 8, v16, t3, s0
  .else
    vsll.vx v16, v16, t2
    scale_twice x, 8, v16, t3, t4, s0
  .endif
    finish_clamped 8, v16, s1, s2, s3
    store_and_next
    leave s0, s1, s2, s3
end_function \name
.endm

    sum rvv_add_s8, vadd, 0
    sum rvv_add_u8, vadd, 0, u
    sum rvv_add_strided_s8, vadd, 1
    sum rvv_add_strided_u8, vadd, 1, u
    sum rvv_sub_s8, vsub, 0
    sum rvv_sub_u8, vsub, 0, u
    sum rvv_sub_strided_s8, vsub, 1
    sum rvv_sub_strided_u8, vsub, 1, u
    product rvv_mul_s8, 0, 0
    product rvv_mul_u8, 0, 0, u
    product rvv_mul_strided_s8, 1, 0
    product rvv_mul_strided_u8, 1, 0, u
    product rvv_mul_once_s8, 0, 1
    product rvv_mul_once_u8, 0, 1, u
    product rvv_mul_once_strided_s8, 1, 1
    product rvv_mul_once_strided_u8, 1, 1, u
