/* PRELU, eight elements at a time. Armv8.1-M with MVE (integer).
 *
 *   void mve_prelu_<s8|u8>(const void *x0, const void *x1, void *y, int32_t count, int32_t step0, int32_t step1,
 *                          const void *parameters, const void *table);
 *
 *   v = x0 - zero_point0;  y = table[v] where v >= 0, else requantize(v * (x1 - zero_point1)), in mode lowered of rounding.py
 *
 * step1 is 1, or 0 for a single slope. Products have 32 bits between b and t forms of instructions, so none of these may be
 * predicated; for the tail only the loads and the store are. A vector takes 24 instructions. y may be x0.
 */
#include "mve_asm.h"

#define STEP1 96                       /* of the stack, above the registers that are saved */
#define PARAMETERS 100                 /* and table */

/* q4 = x0 - zero_point0, q1 = x1 to q2, the output as 16 bits. */
.macro compute
    vsub.i16 q4, q0, r4
    vsub.i16 q1, q1, r5
    vmullb.s16 q2, q4, q1
    vmullt.s16 q3, q4, q1
    scale lowered, q2, r6, r7, q0
    scale lowered, q3, r6, r7, q0
    vqmovnb.s32 q2, q2
    vqmovnt.s32 q2, q3
    vqadd.s16 q2, q2, r12
    vmax.s16 q2, q2, q6
    vmin.s16 q2, q2, q7
    vptt.s16 ge, q4, zr
    vldrbt.u16 q0, [r8, q4]
    vmovt q2, q0
.endm

.macro prelu name, type
    function \name
    push {r4-r9, lr}
    vpush {d8-d15}
    ldr r9, [sp, #STEP1]
    ldrd r5, r8, [sp, #PARAMETERS]
    ldrd r4, r12, [r5, #20]
    vdup.16 q6, r4
    vdup.16 q7, r12
    ldm r5, {r4-r7, r12}
    lsr lr, r3, #3
    and r3, r3, #7
    cmp r9, #0
    beq 4f
    wls lr, lr, 2f
1:  vldrb.\type\()16 q0, [r0], #8
    vldrb.\type\()16 q1, [r1], #8
    compute
    vstrb.16 q2, [r2], #8
    le lr, 1b
2:  vctp.16 r3
    vpst
    vldrbt.\type\()16 q1, [r1]
    b 7f
4:  ldrb r9, [r1]
    .ifc \type,s
    sxtb r9, r9
    .endif
    vdup.16 q5, r9
    wls lr, lr, 6f
5:  vldrb.\type\()16 q0, [r0], #8
    vmov q1, q5
    compute
    vstrb.16 q2, [r2], #8
    le lr, 5b
6:  vmov q1, q5
7:  cbz r3, 8f
    vctp.16 r3
    vpst
    vldrbt.\type\()16 q0, [r0]
    compute
    vctp.16 r3
    vpst
    vstrbt.16 q2, [r2]
8:  vpop {d8-d15}
    pop {r4-r9, pc}
    end_function \name
.endm

    prelu mve_prelu_s8, s
    prelu mve_prelu_u8, u
