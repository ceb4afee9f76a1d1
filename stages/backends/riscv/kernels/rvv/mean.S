/* Means over one or two axes of an 8-bit tensor. The division is part of the multiplier.
 *
 *   void rvv_mean_<type>(const void *x, void *y, int32_t count, const void *fields);              elements of x are neighbours
 *   void rvv_mean_strided_<type>(...)                                                              any distance
 *
 *   y        `count` neighbours
 *   fields   int32: distance of elements in x; extent and distance of the outer and of the inner axis; zero points of all
 *            elements; multiplier, limit and right shift of sums (rvv_asm.h); zero point and bounds of y
 *
 * Up to 255 elements are added in 16 bits, then in 32:
 *
 *     v4 ... v7      elements      e8, m4
 *     v8 ... v15     their sums    e16, m8
 *     v16 ... v31    all sums      two groups e32, m8: `lower` and `upper` elements
 */
#include "rvv_asm.h"

#define in a0
#define out a1
#define count a2
#define fields a3
#define x_step a4
#define rows a5
#define row_step a6
#define columns a7
#define column_step t0
#define vl t1
#define lower t2
#define upper t3
#define row t4
#define element t5
#define end t6
#define rows_left s0
#define columns_left s1
#define together s2
#define offset s3
#define multiplier s4
#define limit s5
#define right s6
#define divisor s4
#define half s5
#define half2 s6
#define zero_point s7
#define low s8
#define high s9
#define SAVED s0, s1, s2, s3, s4, s5, s6, s7, s8, s9

#define MOST 255                      /* elements of a sum of 16 bits */

.macro scaled sums, elements
    vsetvli zero, \elements, e32, m8, ta, ma
    scale_twice x, 8, \sums, multiplier, limit, right
.endm

/* Divided by `divisor`, halves away from zero. */
.macro divided sums, elements
    vsetvli zero, \elements, e32, m8, ta, mu
    vmslt.vx v0, \sums, zero
    vadd.vx \sums, \sums, half
    vsub.vx \sums, \sums, half2, v0.t
    vdiv.vx \sums, \sums, divisor
    use_e16 8
    vncvt.x.x.w \sums, \sums
.endm

.macro finish how, sums, elements
    \how \sums, \elements
    finish_clamped 8, \sums, zero_point, low, high
    vse8.v \sums, (out)
    add out, out, \elements
.endm

/* The loops, with all fields in registers. `how` computes 16-bit results from sums. */
.macro reduce how, strided, unsigned
1:  vsetvli end, zero, e32, m8, ta, ma
    vmv.v.x v16, offset
    vmv.v.x v24, offset
    vsetvli vl, count, e8, m4, ta, ma
    mv lower, vl
    bleu vl, end, 2f
    mv lower, end                     /* the elements of v8 ... v11 */
2:  sub upper, vl, lower
    mv row, in
    mv rows_left, rows
3:  mv element, row
    mv columns_left, columns
4:  li together, MOST
    bleu together, columns_left, 5f
    mv together, columns_left
5:  mul end, together, column_step
    add end, end, element
    vsetvli zero, vl, e16, m8, ta, ma
    vmv.v.i v8, 0
    vsetvli zero, vl, e8, m4, ta, ma
6:
  .if \strided
    vlse8.v v4, (element), x_step
  .else
    vle8.v v4, (element)
  .endif
    add element, element, column_step
    vwadd\unsigned\().wv v8, v8, v4
    bne element, end, 6b
    vsetvli zero, lower, e16, m4, ta, ma
    vwadd\unsigned\().wv v16, v16, v8
    vsetvli zero, upper, e16, m4, ta, ma
    vwadd\unsigned\().wv v24, v24, v12
    sub columns_left, columns_left, together
    bnez columns_left, 4b
    add row, row, row_step
    addi rows_left, rows_left, -1
    bnez rows_left, 3b
    finish \how, v16, lower
    beqz upper, 7f
    finish \how, v24, upper
7:  mul end, vl, x_step
    add in, in, end
    sub count, count, vl
    bnez count, 1b
.endm

.macro mean name, strided, unsigned
function \name
    save SAVED
    round_half_up
    load_fields fields, 0, x_step, rows, row_step, columns, column_step, offset, multiplier, limit, right
    load_fields fields, 9, zero_point, low, high
    neg offset, offset
    reduce scaled, \strided, \unsigned
    leave SAVED
end_function \name
.endm

/* void rvv_average_<type>(const void *x, void *y, const void *fields)
 *
 * The averages of all pixels of an NHWC image. fields: pixels, channels, bounds of y. */
.macro average name, unsigned
function \name
    save SAVED
    mv fields, a2
    load_fields fields, 0, columns, count, low, high
    mv column_step, count
    mv divisor, columns
    srli half, columns, 1
    slli half2, half, 1
    li x_step, 1
    li rows, 1
    li offset, 0
    li zero_point, 0
    reduce divided, 0, \unsigned
    leave SAVED
end_function \name
.endm

    average rvv_average_s8
    average rvv_average_u8, u
    mean rvv_mean_s8, 0
    mean rvv_mean_u8, 0, u
    mean rvv_mean_strided_s8, 1
    mean rvv_mean_strided_u8, 1, u
