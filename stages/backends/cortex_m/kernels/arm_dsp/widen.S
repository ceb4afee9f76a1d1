/* Copies a channel of an image into its padded plane, widened to int16. Thumb-2 with the DSP extension.
 *
 *   void arm_dsp_widen_<s8|u8>_<near|apart>(int16_t *plane, const void *x, const int32_t *geometry);
 *
 *   geometry  the C structure arm_dsp_widen
 *   near      consecutive bytes: four at a time in seven instructions
 *   apart     bytes that are column_step apart: two at a time in five instructions
 *
 * uint8 becomes int8 by flipping the top bit (one instruction more). The loops are unrolled and entered in the middle.
 */
#include "dsp_asm.h"

#define to r0
#define from r1
#define rows r2
#define columns r3
#define entry r4                       /* of a row */
#define jump r5                        /* from the end of a row's full iterations to the next row */
#define step r6
#define turns r7
#define to_jump r11
#define left r12                       /* iterations for this row */
#define last lr                        /* where the rest of a row begins */

.macro four                            /* all instructions have four bytes, because the entry is computed */
    ldr.w r8, [from], #4
    .if flip
    eor r8, r8, #0x80808080
    .endif
    sxtb16 r9, r8
    sxtb16 r8, r8, ror #8
    pkhbt r10, r9, r8, lsl #16
    pkhtb r8, r8, r9, asr #16
    str.w r10, [to], #4
    str.w r8, [to], #4
.endm

.macro two
    .if flip
    ldrb.w r8, [from]
    ldrb.w r9, [from, step]
    .else
    ldrsb.w r8, [from]
    ldrsb.w r9, [from, step]
    .endif
    pkhbt r8, r8, r9, lsl #16
    .if flip
    ssub16 r8, r8, r10                 /* 128 in both halves */
    .endif
    add.w from, from, step, lsl #1
    str.w r8, [to], #4
.endm

.macro one at
    .if flip
    ldrb.w r8, [from, #\at]
    sub.w r8, r8, #128
    .else
    ldrsb.w r8, [from, #\at]
    .endif
    strh.w r8, [to, #2 * \at]
.endm

/* `step` widens `count` bytes; an iteration has it `unrolled` times. */
.macro widen name, flips, count, unrolled, step_of
    .set flip, \flips
    enter \name
    ldm r2, {rows, columns, r5-r8}     /* and row_step, column_step, first, pitch */
    cmp rows, #0
    ble.w .Lend_\@
    add to, to, r7, lsl #1
    bic r9, columns, #\count - 1       /* of whole steps */
    sub r8, r8, r9
    lsl to_jump, r8, #1
    .if \count == 4
    sub jump, jump, r9
    .else
    mls jump, r9, step, jump
    mov r10, #0x00800080
    .endif
    and r9, columns, #\count - 1
    adr last, .Lrest_end_\@ + 1
    .if flip
    add r9, r9, r9, lsl #1
    sub last, last, r9, lsl #2         /* twelve bytes of code for each element */
    .else
    sub last, last, r9, lsl #3
    .endif
    mov entry, last
    .if \count == 4
    lsrs r8, columns, #2
    .else
    lsrs r8, columns, #1
    .endif
    beq .Lrow_\@
    add turns, r8, #\unrolled - 1
    bic turns, turns, #\unrolled - 1
    .if \unrolled == 8
    lsr turns, turns, #3
    .else
    lsr turns, turns, #2
    .endif
    rsb r8, r8, #0
    and r8, r8, #\unrolled - 1         /* steps that the first iteration skips */
    mov r9, #(.Lloop_end_\@ - .Lloop_\@) / \unrolled
    adr entry, .Lloop_\@
    mla entry, r8, r9, entry
    orr entry, entry, #1
.Lrow_\@:
    mov left, turns
    bx entry
    .balign 4
.Lloop_\@:
    .rept \unrolled
    \step_of
    .endr
.Lloop_end_\@:
    subs left, left, #1
    bne .Lloop_\@
    bx last
    .balign 4
    .if \count == 4
    one 2
    one 1
    .endif
    one 0
    .balign 4
.Lrest_end_\@:
    add from, from, jump
    add to, to, to_jump
    subs rows, rows, #1
    bne .Lrow_\@
.Lend_\@:
    leave
    end_function \name
.endm

widen arm_dsp_widen_s8_near, 0, 4, 8, four
widen arm_dsp_widen_u8_near, 1, 4, 8, four
widen arm_dsp_widen_s8_apart, 0, 2, 4, two
widen arm_dsp_widen_u8_apart, 1, 2, 4, two
