/* Rows of bytes and of every n-th byte. Armv8.1-M with MVE (integer).
 *
 *   void mve_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step);
 *   void mve_pick_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step, int32_t stride);
 *   void mve_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step);
 *
 *   copy   rows of `bytes` neighbours. One row of 16 bytes takes 3 instructions; rows of 16 bytes at most take 6 each
 *   pick   y[i] = x[i * stride], eight at a time, in 4 instructions; stride is at most 8191: offsets have 16 bits
 *   fill   `rows` > 0 runs of `bytes` of `value`, `step` apart
 */
#include "mve_asm.h"

    function mve_copy_rows
    push {r4-r7, lr}
    ldrd r4, r5, [sp, #20]
    cmp r3, #16
    ble 4f
1:  mov r6, r0
    mov r7, r1
    wlstp.8 lr, r3, 3f
2:  vldrb.8 q0, [r7], #16
    vstrb.8 q0, [r6], #16
    letp lr, 2b
3:  add r0, r0, r4
    add r1, r1, r5
    subs r2, r2, #1
    bne 1b
    pop {r4-r7, pc}
4:  vctp.8 r3
    dls lr, r2
5:  vpstt
    vldrbt.8 q0, [r1]
    vstrbt.8 q0, [r0]
    add r0, r0, r4
    add r1, r1, r5
    le lr, 5b
    pop {r4-r7, pc}
    end_function mve_copy_rows

    function mve_pick_rows
    push {r4-r8, lr}
    ldrd r4, r5, [sp, #24]
    ldr r8, [sp, #32]
    movs r6, #0
    vidup.u16 q0, r6, #1
    vmul.i16 q0, q0, r8
    lsl r8, r8, #3
1:  mov r6, r0
    mov r7, r1
    wlstp.16 lr, r3, 3f
2:  vldrb.u16 q1, [r7, q0]
    add r7, r7, r8
    vstrb.16 q1, [r6], #8
    letp lr, 2b
3:  add r0, r0, r4
    add r1, r1, r5
    subs r2, r2, #1
    bne 1b
    pop {r4-r8, pc}
    end_function mve_pick_rows

    function mve_fill_rows
    push {r4, r5, r7, lr}
    ldr r4, [sp, #16]
    vdup.8 q0, r1
1:  mov r5, r0
    wlstp.8 lr, r3, 3f
2:  vstrb.8 q0, [r5], #16
    letp lr, 2b
3:  add r0, r0, r4
    subs r2, r2, #1
    bne 1b
    pop {r4, r5, r7, pc}
    end_function mve_fill_rows
