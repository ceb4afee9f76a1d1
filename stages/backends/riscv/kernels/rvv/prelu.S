/* PRELU: a table for elements from zero on, scaled products with slopes below.
 *
 *   void rvv_prelu_<type>(const void *x, const void *slopes, void *y, int32_t count, int32_t x_step, int32_t slope_step,
 *                         const void *fields, const void *table);
 *
 *   table    results of the elements from the zero point on
 *   fields   int32: zero points of x and slopes, multiplier and right shift of products, zero point and bounds of y
 *   y        may be x
 */
#include "rvv_asm.h"

#define in a0
#define slopes a1
#define out a2
#define count a3
#define x_step a4
#define slope_step a5
#define fields a6
#define table a7
#define zero_point0 t0
#define zero_point1 t1
#define multiplier t2
#define right t3
#define limit t4
#define vl t5
#define step t6
#define zero_point s0
#define low s1
#define high s2

.macro prelu name, below, unsigned
function \name
    save s0, s1, s2
    round_half_up
    load_fields fields, 0, zero_point0, zero_point1, multiplier, right, zero_point, low, high
    seqz limit, right
    slli limit, limit, 31
1:  vsetvli vl, count, e8, m2, ta, ma
    vlse8.v v2, (in), x_step
    mul step, x_step, vl
    add in, in, step
    vlse8.v v4, (slopes), slope_step
    mul step, slope_step, vl
    add slopes, slopes, step
    vsub.vx v6, v2, zero_point0
    vluxei8.v v6, (table), v6
    vwsub\unsigned\().vx v8, v2, zero_point0
    vwsub\unsigned\().vx v12, v4, zero_point1
    use_e16 8
    vwmul.vv v16, v8, v12
    use_e32 8
    scale_twice x, 8, v16, multiplier, limit, right
    finish_clamped 8, v16, zero_point, low, high
    \below v0, v2, zero_point0
    vmerge.vvm v6, v6, v16, v0
    sub count, count, vl
    vse8.v v6, (out)
    add out, out, vl
    bnez count, 1b
    leave s0, s1, s2
end_function \name
.endm

    prelu rvv_prelu_s8, vmslt.vx
    prelu rvv_prelu_u8, vmsltu.vx, u
