/* Sums, differences and products of two tensors of 8 or 16 bits, eight elements at a time. Armv8.1-M with MVE (integer).
 *
 *   void mve_<add|sub>_<s8|u8|s16>(const void *x0, const void *x1, void *y, const int32_t *fields);
 *   void mve_mul_<mode>_<s8|u8|s16>(const void *x0, const void *x1, void *y, const int32_t *fields);
 *
 *   add   y = requantize(((x0 - zero_point0) << 19) + or - scaled((x1 - zero_point1) << 20)), in mode lowered of rounding.py
 *   mul   y = requantize((x0 - zero_point0) * (x1 - zero_point1)), in mode exact, lowered or single
 *   s16   all zero points are 0; sums shift by 14 and 15 instead of 19 and 20
 *
 *   fields   rows of the output, which are consecutive; whole, rest: number of vectors of 8 elements in a row, and remaining elements;
 *            row0, row1: bytes from an input's row to its next row; repeat: 1 or 2 if each row of x0 or x1 is one element that is
 *            used for all, else 0; zero_point0, zero_point1; add only: multiplier1, rounder1; multiplier, rounder, zero_point,
 *            low, high
 *
 * Elements have 16 bits when zero points are subtracted and when results are clipped. In between, the b and t forms of instructions
 * widen the even and the odd elements to 32 bits and narrow them again. So no instruction between a load and a store may be
 * predicated; in the tail only the load and the store are. A repeated element is read from copies on the stack. y may be x0 or x1.
 */
#include "mve_asm.h"

#define ROWS 16                        /* the frame: copies of a repeated element, remaining rows */
#define FRAME 24

#define FIELD_ROWS 0
#define FIELD_WHOLE 4                  /* and rest */
#define FIELD_ROW0 12                  /* and row1 */
#define FIELD_REPEAT 20
#define FIELD_ARITHMETIC 24

/* Eight elements at \from as 16 bits. \next advances the pointer if it is 1; \then is t in a predicated block. */
.macro load type, vector, from, next, then
    .ifc \type,s16
    .if \next
    vldrh\then\().16 \vector, [\from], #16
    .else
    vldrh\then\().16 \vector, [\from]
    .endif
    .else
    .if \next
    vldrb\then\().\type\()16 \vector, [\from], #8
    .else
    vldrb\then\().\type\()16 \vector, [\from]
    .endif
    .endif
.endm

/* q0 from x0, q1 from x1 to q2, the output as 16 bits. */
.macro compute operation, mode, type
    .ifnc \type,s16
    vsub.i16 q0, q0, r4
    vsub.i16 q1, q1, r5
    .endif
    .ifc \operation,mul
    vmullb.s16 q2, q0, q1
    vmullt.s16 q3, q0, q1
    .ifc \mode,single
    vqdmulh.s32 q2, q2, r6
    vqdmulh.s32 q3, q3, r6
    .else
    vqrdmulh.s32 q2, q2, r6
    vqrdmulh.s32 q3, q3, r6
    .endif
    .ifc \mode,lowered
    lower q2, q0
    lower q3, q1
    .endif
    vqrdmulh.s32 q2, q2, r7
    vqrdmulh.s32 q3, q3, r7
    .else
    .ifc \type,s16
    vshllb.s16 q2, q1, #15
    vshllt.s16 q3, q1, #15
    .else
    vshl.i16 q1, q1, #4
    vshllb.s16 q2, q1, #16
    vshllt.s16 q3, q1, #16
    .endif
    scale lowered, q2, r6, r7, q1
    scale lowered, q3, r6, r7, q1
    .ifc \type,s16
    vshllb.s16 q4, q0, #14
    vshllt.s16 q5, q0, #14
    .else
    vshl.i16 q0, q0, #3
    vshllb.s16 q4, q0, #16
    vshllt.s16 q5, q0, #16
    .endif
    v\operation\().i32 q2, q4, q2
    v\operation\().i32 q3, q5, q3
    scale lowered, q2, r8, r9, q1
    scale lowered, q3, r8, r9, q1
    .endif
    vqmovnb.s32 q2, q2
    vqmovnt.s32 q2, q3
    .ifnc \type,s16
    vqadd.s16 q2, q2, r12
    .endif
    vmax.s16 q2, q2, q6
    vmin.s16 q2, q2, q7
.endm

/* The whole vectors of a row; \next0 and \next1 are 0 for a repeated input. */
.macro vectors operation, mode, type, next0, next1
    wls lr, lr, 2f
1:  load \type, q0, r0, \next0
    load \type, q1, r1, \next1
    compute \operation, \mode, \type
    .ifc \type,s16
    vstrh.16 q2, [r2], #16
    .else
    vstrb.16 q2, [r2], #8
    .endif
    le lr, 1b
2:
.endm

/* Fills the frame with copies of the element at \from. */
.macro repeated type, from
    .ifc \type,s16
    ldrh lr, [\from]
    vdup.16 q0, lr
    .else
    ldrb lr, [\from]
    vdup.8 q0, lr
    .endif
    vstrw.32 q0, [sp]
.endm

.macro elementwise name, operation, mode, type
    function \name
    push {r4-r11, lr}
    vpush {d8-d15}
    sub sp, sp, #FRAME
    mov r10, r0
    mov r11, r1
    add lr, r3, #FIELD_ARITHMETIC
    .ifc \operation,mul
    ldmia lr!, {r4-r7, r12}
    .else
    ldmia lr!, {r4-r9, r12}
    .endif
    ldrd r0, r1, [lr]
    vdup.16 q6, r0
    vdup.16 q7, r1
    ldr lr, [r3, #FIELD_ROWS]
3:  str lr, [sp, #ROWS]
    mov r0, r10
    mov r1, r11
    ldr lr, [r3, #FIELD_REPEAT]
    cmp lr, #1
    beq 4f
    bgt 5f
    ldr lr, [r3, #FIELD_WHOLE]
    vectors \operation, \mode, \type, 1, 1
    b 6f
4:  repeated \type, r10
    mov r0, sp
    ldr lr, [r3, #FIELD_WHOLE]
    vectors \operation, \mode, \type, 0, 1
    b 6f
5:  repeated \type, r11
    mov r1, sp
    ldr lr, [r3, #FIELD_WHOLE]
    vectors \operation, \mode, \type, 1, 0
6:  ldr lr, [r3, #(FIELD_WHOLE + 4)]
    cmp lr, #0
    beq 7f
    vctp.16 lr
    vpstt
    load \type, q0, r0, 0, t
    load \type, q1, r1, 0, t
    compute \operation, \mode, \type
    vpst
    .ifc \type,s16
    vstrht.16 q2, [r2]
    add r2, r2, lr, lsl #1
    .else
    vstrbt.16 q2, [r2]
    add r2, r2, lr
    .endif
7:  ldrd r0, r1, [r3, #FIELD_ROW0]
    ldr lr, [sp, #ROWS]
    add r10, r10, r0
    add r11, r11, r1
    subs lr, lr, #1
    bne 3b
    add sp, sp, #FRAME
    vpop {d8-d15}
    pop {r4-r11, pc}
    end_function \name
.endm

    elementwise mve_add_s8, add, lowered, s
    elementwise mve_add_u8, add, lowered, u
    elementwise mve_sub_s8, sub, lowered, s
    elementwise mve_sub_u8, sub, lowered, u
    elementwise mve_add_s16, add, lowered, s16
    elementwise mve_sub_s16, sub, lowered, s16
    elementwise mve_mul_exact_s8, mul, exact, s
    elementwise mve_mul_exact_u8, mul, exact, u
    elementwise mve_mul_lowered_s8, mul, lowered, s
    elementwise mve_mul_lowered_u8, mul, lowered, u
    elementwise mve_mul_single_s8, mul, single, s
    elementwise mve_mul_single_u8, mul, single, u
    elementwise mve_mul_exact_s16, mul, exact, s16
    elementwise mve_mul_lowered_s16, mul, lowered, s16
    elementwise mve_mul_single_s16, mul, single, s16
