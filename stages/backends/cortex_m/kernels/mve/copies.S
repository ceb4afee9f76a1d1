/* Copies rows of bytes: all of them, every n-th item, or bytes selected by a table. Armv8.1-M with MVE (integer).
 *
 *   void mve_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step);
 *   void mve_pick_rows_<8|16|32>(void *y, const void *x, int32_t rows, int32_t items, int32_t y_step, int32_t x_step, int32_t stride);
 *   void mve_put_rows_<8|16|32>(void *y, const void *x, int32_t rows, int32_t items, int32_t y_step, int32_t x_step, int32_t stride);
 *   void mve_gather_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step, const uint8_t *offsets);
 *   void mve_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step);
 *
 *   copy   rows of `bytes` consecutive bytes. 16 bytes of a row take 3 instructions; a row of up to 16 bytes takes 6
 *   pick   y[i] = x[i * stride] for items of 8, 16 or 32 bits; a vector takes 4 instructions. Strides and steps are in bytes. For
 *          items of 8 and 16 bits (eight per vector) stride is at most 8191, because offsets have 16 bits. Items of 32 bits are
 *          aligned to 4 bytes
 *   put    y[i * stride] = x[i], with the same limits
 *   gather y[i] = x[offsets[i]]. 16 bytes take 4 instructions; a row of up to 16 bytes takes 6
 *   fill   `rows` > 0 runs of `bytes` bytes with `value`, `step` bytes apart
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

/* `way` is pick or put. A vector has the offsets of `items` items of `bits` bits, in lanes of `lanes` bits. */
.macro strided way, bits, letter, lanes, items, step
    function mve_\way\()_rows_\bits
    push {r4-r8, lr}
    ldrd r4, r5, [sp, #24]
    ldr r8, [sp, #32]
    movs r6, #0
    vidup.u\lanes q0, r6, #1
    vmul.i\lanes q0, q0, r8
    mov r6, #\items
    mul r8, r8, r6
1:  mov r6, r0
    mov r7, r1
    wlstp.\lanes lr, r3, 3f
2:  .ifc \way,pick
    vldr\letter\().u\lanes q1, [r7, q0]
    add r7, r7, r8
    vstr\letter\().\lanes q1, [r6], #\step
    .else
    vldr\letter\().u\lanes q1, [r7], #\step
    vstr\letter\().\lanes q1, [r6, q0]
    add r6, r6, r8
    .endif
    letp lr, 2b
3:  add r0, r0, r4
    add r1, r1, r5
    subs r2, r2, #1
    bne 1b
    pop {r4-r8, pc}
    end_function mve_\way\()_rows_\bits
.endm

    strided pick, 8, b, 16, 8, 8
    strided pick, 16, h, 16, 8, 16
    strided pick, 32, w, 32, 4, 16
    strided put, 8, b, 16, 8, 8
    strided put, 16, h, 16, 8, 16
    strided put, 32, w, 32, 4, 16

    function mve_gather_rows
    push {r4-r8, lr}
    ldrd r4, r5, [sp, #24]
    ldr r12, [sp, #32]
    cmp r3, #16
    ble 4f
1:  mov r6, r0
    mov r7, r12
    wlstp.8 lr, r3, 3f
2:  vldrb.8 q0, [r7], #16
    vldrb.u8 q1, [r1, q0]
    vstrb.8 q1, [r6], #16
    letp lr, 2b
3:  add r0, r0, r4
    add r1, r1, r5
    subs r2, r2, #1
    bne 1b
    pop {r4-r8, pc}
4:  vctp.8 r3
    vpst
    vldrbt.8 q0, [r12]
    dls lr, r2
5:  vpstt
    vldrbt.u8 q1, [r1, q0]
    vstrbt.8 q1, [r0]
    add r0, r0, r4
    add r1, r1, r5
    le lr, 5b
    pop {r4-r8, pc}
    end_function mve_gather_rows

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
