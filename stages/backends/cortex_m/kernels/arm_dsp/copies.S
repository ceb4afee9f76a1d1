/* Copies and fills rows of bytes at any alignment. Thumb-2.
 *
 *   void arm_dsp_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step);
 *   void arm_dsp_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step);
 *
 *   copy   `rows` rows of `bytes` > 0 bytes, 32 bytes at a time. If all rows begin at a word in x and y, one instruction loads
 *          eight words and one stores them. If rows begin at a word only in x or only in y, the other side takes an instruction
 *          per word. If rows begin at a word in neither, their first bytes are copied one by one until y is at a word.
 *   fill   `rows` > 0 runs of `bytes` bytes with `value`, `step` bytes apart
 *
 * Single words and halfwords may be unaligned: Armv7-M allows that except for loads and stores of several words.
 */
#include "dsp_asm.h"

/* The flags show which bytes are left. left_16_8: C for 16, N for 8, Z if fewer than 16 are left and none of them. left_4_2: C for
 * 4, N for 2. left_1: N for 1. `left` may have higher bits. */
.macro left_16_8 left
    lsls \left, \left, #28
.endm

.macro left_4_2 left
    lsls \left, \left, #2
.endm

.macro left_1 left
    lsls \left, \left, #1
.endm

.macro copy_word
    ldr r4, [r1], #4
    str r4, [r0], #4
.endm

/* Fewer than 8 bytes. */
.macro copy_rest left
    left_4_2 \left
    bcc 31f
    copy_word
31: bpl 32f
    ldrh r4, [r1], #2
    strh r4, [r0], #2
32: left_1 \left
    bpl 33f
    ldrb r4, [r1], #1
    strb r4, [r0], #1
33:
.endm

/* Advances both pointers to the next row and jumps to `again`. The stack holds the steps minus the bytes of a row. */
.macro next_row again
    ldrd r4, r5, [sp, #SAVED]
    add r0, r0, r4
    add r1, r1, r5
    subs r2, r2, #1
    bne \again
.endm

    enter arm_dsp_copy_rows
    ldrd r4, r5, [sp, #SAVED]
    orr r6, r0, r1
    orr r7, r4, r5
    orr r6, r6, r7
    sub r4, r4, r3
    sub r5, r5, r3
    strd r4, r5, [sp, #SAVED]
    tst r6, #3
    bne 10f

/* All rows begin at a multiple of four. */
1:  subs r12, r3, #32
    blo 3f
2:  ldmia r1!, {r4-r11}
    subs r12, r12, #32
    stmia r0!, {r4-r11}
    bhs 2b
3:  left_16_8 r12
    bcc 4f
    ldmia r1!, {r4-r7}
    stmia r0!, {r4-r7}
4:  beq 6f
    bpl 5f
    ldmia r1!, {r4, r5}
    stmia r0!, {r4, r5}
5:  copy_rest r12
6:  next_row 1b
    leave

10: mov r12, r3
    tst r1, #3
    beq 20f
    rsb lr, r0, #0
    ands lr, lr, #3
    beq 11f
    cmp r12, #32
    blo 22f
    sub r12, r12, lr
    lsls lr, lr, #31
    itt mi
    ldrbmi r4, [r1], #1
    strbmi r4, [r0], #1
    itt cs
    ldrhcs r4, [r1], #2
    strhcs r4, [r0], #2

/* y is at a word. */
11: subs r12, r12, #32
    blo 22f
12: ldr r4, [r1]
    ldr r5, [r1, #4]
    ldr r6, [r1, #8]
    ldr r7, [r1, #12]
    ldr r8, [r1, #16]
    ldr r9, [r1, #20]
    ldr r10, [r1, #24]
    ldr r11, [r1, #28]
    add r1, r1, #32
    subs r12, r12, #32
    stmia r0!, {r4-r11}
    bhs 12b
    b 22f

/* x is at a word. */
20: subs r12, r12, #32
    blo 22f
21: ldmia r1!, {r4-r11}
    subs r12, r12, #32
    str r4, [r0]
    str r5, [r0, #4]
    str r6, [r0, #8]
    str r7, [r0, #12]
    str r8, [r0, #16]
    str r9, [r0, #20]
    str r10, [r0, #24]
    str r11, [r0, #28]
    add r0, r0, #32
    bhs 21b

22: left_16_8 r12
    bcc 23f
    copy_word
    copy_word
    copy_word
    copy_word
23: beq 25f
    bpl 24f
    copy_word
    copy_word
24: copy_rest r12
25: next_row 10b
    leave
    end_function arm_dsp_copy_rows

    enter arm_dsp_fill_rows
    and r4, r1, #255
    orr r4, r4, r4, lsl #8
    orr r4, r4, r4, lsl #16
    mov r5, r4
    mov r6, r4
    mov r7, r4
    mov r8, r4
    mov r9, r4
    mov r10, r4
    mov r11, r4
    ldr r1, [sp, #SAVED]
    sub r1, r1, r3
1:  mov r12, r3
    cmp r3, #16
    blo 4f
    rsb lr, r0, #0
    ands lr, lr, #3
    beq 2f
    sub r12, r12, lr
    lsls lr, lr, #31
    it mi
    strbmi r4, [r0], #1
    it cs
    strhcs r4, [r0], #2
2:  subs r12, r12, #32
    blo 4f
3:  stmia r0!, {r4-r11}
    subs r12, r12, #32
    bhs 3b
4:  left_16_8 r12
    bcc 5f
    stmia r0!, {r4-r7}
5:  beq 9f
    bpl 6f
    str r4, [r0], #4
    str r4, [r0], #4
6:  left_4_2 r12
    bcc 7f
    str r4, [r0], #4
7:  bpl 8f
    strh r4, [r0], #2
8:  left_1 r12
    bpl 9f
    strb r4, [r0], #1
9:  add r0, r0, r1
    subs r2, r2, #1
    bne 1b
    leave
    end_function arm_dsp_fill_rows
