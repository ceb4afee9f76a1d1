/* Functions of bytes: tables, maximum and minimum of two tensors. A turn has eight registers of elements. */
#include "rvv_asm.h"

/* void rvv_table(const void *x, const void *table, void *y, int32_t count)
 *
 * y[i] = table[x[i]] by the bits of an element; y may be x. */
function rvv_table
1:  vsetvli t0, a3, e8, m8, ta, ma
    vle8.v v8, (a0)
    add a0, a0, t0
    vluxei8.v v16, (a1), v8
    sub a3, a3, t0
    vse8.v v16, (a2)
    add a2, a2, t0
    bnez a3, 1b
    ret
end_function rvv_table

/* void rvv_<maximum|minimum>_<type>(const void *x0, const void *x1, void *y, int32_t count, int32_t step0, int32_t step1)
 *
 * y[i] of x0[i * step0] and x1[i * step1]; y may be an input. */
.macro extremum name, op
function \name
    li t1, 1
    bne a4, t1, 2f
    bne a5, t1, 2f
1:  vsetvli t0, a3, e8, m8, ta, ma
    vle8.v v8, (a0)
    add a0, a0, t0
    vle8.v v16, (a1)
    add a1, a1, t0
    \op v8, v8, v16
    sub a3, a3, t0
    vse8.v v8, (a2)
    add a2, a2, t0
    bnez a3, 1b
    ret
2:  vsetvli t0, a3, e8, m8, ta, ma
    vlse8.v v8, (a0), a4
    mul t1, a4, t0
    add a0, a0, t1
    vlse8.v v16, (a1), a5
    mul t1, a5, t0
    add a1, a1, t1
    \op v8, v8, v16
    sub a3, a3, t0
    vse8.v v8, (a2)
    add a2, a2, t0
    bnez a3, 2b
    ret
end_function \name
.endm

    extremum rvv_maximum_s8, vmax.vv
    extremum rvv_maximum_u8, vmaxu.vv
    extremum rvv_minimum_s8, vmin.vv
    extremum rvv_minimum_u8, vminu.vv
