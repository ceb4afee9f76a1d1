/* Vectors of SOFTMAX (softmax.c) and RESIZE_BILINEAR (resize.c). A turn has eight registers of 32-bit elements. */
#include "rvv_asm.h"

#define vl t0

/* int32_t rvv_largest_<type>(const void *x, int32_t count) */
.macro largest name, op, least
function \name
    vsetvli vl, zero, e8, m8, ta, ma
    li t1, \least
    vmv.s.x v1, t1
1:  vsetvli vl, a1, e8, m8, ta, ma
    vle8.v v8, (a0)
    add a0, a0, vl
    sub a1, a1, vl
    \op v1, v8, v1
    bnez a1, 1b
    vmv.x.s a0, v1
.endm

    largest rvv_largest_s8, vredmax.vs, -128
    ret
end_function rvv_largest_s8

    largest rvv_largest_u8, vredmaxu.vs, 0
    andi a0, a0, 255
    ret
end_function rvv_largest_u8

/* Exponentials v16 (e32, m8, Q0.31) of the next elements, by their distances from `top`. */
.macro exponentials x, exp, count, top
    vsetvli vl, \count, e8, m2, ta, ma
    vle8.v v2, (\x)
    add \x, \x, vl
    vrsub.vx v2, v2, \top
    vwmulu.vx v8, v2, t1              /* by 4: offsets in the table */
    use_e32 8
    vluxei16.v v16, (\exp), v8
    sub \count, \count, vl
.endm

/* uint32_t rvv_exponential_sum(const void *x, const int32_t *exp, int32_t count, int32_t top)
 *
 * The sum of the exponentials, each rounded to Q12.19. */
function rvv_exponential_sum
    round_half_up
    li t1, 4
    vsetvli vl, zero, e32, m8, ta, ma
    vmv.s.x v1, zero
1:  exponentials a0, a1, a2, a3
    vssrl.vi v16, v16, 12
    vredsum.vs v1, v16, v1
    bnez a2, 1b
    vmv.x.s a0, v1
    ret
end_function rvv_exponential_sum

/* void rvv_exponential_parts(const void *x, const int32_t *exp, void *y, int32_t count, int32_t top, int32_t scale, int32_t right,
 *                            int32_t lowest)
 *
 * y = min(exponential * scale / 2^right, 255) + lowest */
function rvv_exponential_parts
    round_half_up
    li t1, 4
1:  exponentials a0, a1, a3, a4
    vsmul.vx v16, v16, a5
    use_e16 8
    vnclipu.wx v16, v16, a6
    use_e8 8
    vnclipu.wi v16, v16, 0
    vadd.vx v16, v16, a7
    vse8.v v16, (a2)
    add a2, a2, vl
    bnez a3, 1b
    ret
end_function rvv_exponential_parts

/* void rvv_between_rows(int32_t *to, const int8_t *first, const int8_t *second, int32_t count, int32_t share0, int32_t share1)
 *
 * to = first * share0 + second * share1 */
function rvv_between_rows
1:  vsetvli vl, a3, e8, m2, ta, ma
    vle8.v v2, (a1)
    add a1, a1, vl
    vle8.v v4, (a2)
    add a2, a2, vl
    use_e16 8
    vsext.vf2 v8, v2
    vsext.vf2 v12, v4
    vwmul.vx v16, v8, a4
    vwmacc.vx v16, a5, v12
    use_e32 8
    sub a3, a3, vl
    vse32.v v16, (a0)
    slli vl, vl, 2
    add a0, a0, vl
    bnez a3, 1b
    ret
end_function rvv_between_rows

/* void rvv_between_columns(int8_t *to, const int32_t *first, const int32_t *second, int32_t count, int32_t share0, int32_t share1)
 *
 * to = (first * share0 + second * share1) / 2^20, halves away from zero */
function rvv_between_columns
    round_half_up
1:  vsetvli vl, a3, e32, m8, ta, ma
    vle32.v v8, (a1)
    vle32.v v16, (a2)
    vmul.vx v8, v8, a4
    vmacc.vx v8, a5, v16
    subtract_sign x, v8, zero
    use_e16 8
    vnclip.wi v8, v8, 20
    use_e8 8
    vnsrl.wi v8, v8, 0
    sub a3, a3, vl
    vse8.v v8, (a0)
    add a0, a0, vl
    slli vl, vl, 2
    add a1, a1, vl
    add a2, a2, vl
    bnez a3, 1b
    ret
end_function rvv_between_columns

/* void rvv_between_pixels(int8_t *to, const int32_t *row, const int32_t *columns, int32_t pixels, int32_t channels)
 *
 * The same for few channels: a vector has one channel of some pixels.
 *
 *     v4, v8      positions of both columns in the row, in bytes      e32, m4
 *     v24, v12    their shares
 */
function rvv_between_pixels
    round_half_up
    slli a6, a4, 2                    /* bytes of a pixel in the row */
    li a7, 12                         /* bytes of a column's entry */
    li t1, 1024
1:  vsetvli vl, a3, e32, m4, ta, ma
    vlse32.v v4, (a2), a7
    addi t2, a2, 4
    vlse32.v v8, (t2), a7
    addi t2, a2, 8
    vlse32.v v12, (t2), a7
    vmul.vx v4, v4, a6
    vmul.vx v8, v8, a6
    vrsub.vx v24, v12, t1
    mv t3, a1
    mv t4, a0
    mv t5, a4
2:  vluxei32.v v16, (t3), v4
    vluxei32.v v20, (t3), v8
    vmul.vv v16, v16, v24
    vmacc.vv v16, v12, v20
    subtract_sign x, v16, zero
    use_e16 4
    vnclip.wi v16, v16, 20
    use_e8 4
    vnsrl.wi v16, v16, 0
    vsse8.v v16, (t4), a4
    use_e32 4
    addi t3, t3, 4
    addi t4, t4, 1
    addi t5, t5, -1
    bnez t5, 2b
    mul t2, vl, a4
    add a0, a0, t2
    mul t2, vl, a7
    add a2, a2, t2
    sub a3, a3, vl
    bnez a3, 1b
    ret
end_function rvv_between_pixels
