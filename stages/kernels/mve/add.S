/* Sum or difference of two tensors of 8 bits, one of which is a shift away from the common scale. Armv8.1-M with MVE (integer).
 *
 *   void mve_<add|sub>_<s8|u8>(const void *x0, const void *x1, void *y, int32_t count, const int32_t *fields);
 *
 *   y = requantize((x0 << 19) + fields.offset + or - scaled((x1 << 20) - fields.zero_point1)), four elements at a time
 *
 *   fields   offset, zero_point1, multiplier1, rounder1, multiplier, rounder, zero_point, low, high
 *
 * Both scalings are two multiplications with a negative value lowered between them: mode lowered of rounding.py. y may be x0 or x1.
 */
#include "mve_asm.h"

.macro elementwise operation, type, load
    function mve_\operation\()_\type
    push {r4-r10, lr}
    mov lr, r3
    ldr r12, [sp, #32]
    ldmia r12!, {r3-r9}                /* offset ... zero_point */
    vpush {d8-d9}
    ldrd r10, r12, [r12]
    vdup.32 q3, r10
    vdup.32 q4, r12
    wlstp.32 lr, lr, 2f
1:  \load q0, [r1], #4
    vshl.i32 q0, q0, #20
    vsub.i32 q0, q0, r4
    scale lowered, q0, r5, r6, q2
    \load q1, [r0], #4
    vshl.i32 q1, q1, #19
    vadd.i32 q1, q1, r3
    v\operation\().i32 q0, q1, q0
    scale lowered, q0, r7, r8, q2
    vadd.i32 q0, q0, r9
    vmax.s32 q0, q0, q3
    vmin.s32 q0, q0, q4
    vstrb.32 q0, [r2], #4
    letp lr, 1b
2:  vpop {d8-d9}
    pop {r4-r10, pc}
    end_function mve_\operation\()_\type
.endm

    elementwise add, s8, vldrb.s32
    elementwise add, u8, vldrb.u32
    elementwise sub, s8, vldrb.s32
    elementwise sub, u8, vldrb.u32
